"""Greedy coreset, GC: the batch that covers a bigger one, point by point the one farthest from all chosen so far.

Roth, Milbich, Sinha, Gupta, Ommer, Cohen: Revisiting Training Strategies and Generalization Performance in Deep Metric
Learning, ICML 2020, and released code.

Departs from the released code: there, the places chosen in one random big batch are looked up in another one, so its
batches are random ones; here they are a coreset. See also: d2_coreset, lookalike.cluster.greedy_k_center.
"""

from functools import partial
from math import ceil

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from lookalike.label_sets import Labels
from lookalike.samplers.bank import EmbeddingBank
from lookalike.samplers.batch_sampler import BatchSampler, shows_settings
from lookalike.samplers.big_batch import Covering, from_bank, pairwise
from lookalike.samplers.grouping import Groups

SOFTENED = 0.03  # a softened choice takes one of this share of the points, the farthest


def farthest_first(
    vectors: Float[Tensor, "b d"], count: int, generator: torch.Generator, softened: bool = False
) -> Integer[Tensor, " count"]:
    """A random point, then `count` − 1 times the one farthest from all before (softened: one of the farthest 3%).

    >>> line = torch.tensor([[0.0], [1.0], [10.0]])
    >>> int(farthest_first(line, 2, torch.Generator().manual_seed(2))[1]) in (0, 2)
    True
    """
    table = pairwise(vectors)
    table.fill_diagonal_(-1.0)  # nearer to a point than anything else is the point itself: it is not chosen again
    top = ceil(SOFTENED * len(vectors)) if softened else 1
    indices = [int(torch.randint(len(vectors), (), generator=generator))]
    nearest = table[indices[0]].clone()
    for _ in range(count - 1):
        if top == 1:
            indices.append(int(nearest.argmax()))
        else:
            among = max(1, min(top, len(vectors) - len(indices)))
            indices.append(int(nearest.topk(among).indices[torch.randint(among, (), generator=generator)]))
        torch.minimum(nearest, table[indices[-1]], out=nearest)
    return torch.tensor(indices)


@shows_settings
def Coreset(
    labels: Labels,
    bank: EmbeddingBank,
    batch_size: int = 112,
    per_class: int = 2,
    big_batch: int = 512,
    softened: bool = False,
    projection: int | None = None,
    batches: int | None = None,
    *,
    seed: int = 0,
    rank: int = 0,
    ranks: int = 1,
) -> BatchSampler:
    """GC: m / n images spread as far as possible over a random big batch, each with n − 1 images of its class.

    `softened` takes a random one of the farthest 3%; `projection` measures distances in that many random dimensions.

    >>> labels = torch.arange(8) // 2
    >>> bank = EmbeddingBank.of(torch.randn(8, 2, generator=torch.Generator().manual_seed(0)))
    >>> [len(batch) for batch in Coreset(labels, bank, batch_size=4, per_class=2)]
    [4, 4]
    """
    choose = partial(farthest_first, softened=softened)
    covering = Covering(Groups.of(labels), batch_size, per_class, big_batch, projection, choose)
    return from_bank(bank, covering, batches, seed=seed, rank=rank, ranks=ranks)
