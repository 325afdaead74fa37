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

from lookalike.errors import check
from lookalike.samplers import course
from lookalike.samplers.bank import EmbeddingBank
from lookalike.samplers.big_batch import check_bank, coresets, pairwise, projected
from lookalike.samplers.class_balanced import check_divides
from lookalike.samplers.course import Course, epoch_length
from lookalike.samplers.grouping import Groups

SOFTENED = 0.03  # the share of points, the farthest ones, that a softened choice is made from


def farthest_first(
    vectors: Float[Tensor, "b d"], count: int, generator: torch.Generator, softened: bool = False
) -> Integer[Tensor, " count"]:
    """A random point, then `count` − 1 times the one farthest from all before (softened: one of the farthest 3 %).

    >>> line = torch.tensor([[0.0], [1.0], [10.0]])
    >>> int(farthest_first(line, 2, torch.Generator().manual_seed(2))[1]) in (0, 2)
    True
    """
    table = pairwise(vectors)
    table.fill_diagonal_(-1.0)  # a chosen point is nearer to itself than any other: never chosen again
    top = ceil(SOFTENED * len(vectors)) if softened else 1
    chosen = [int(torch.randint(len(vectors), (), generator=generator))]
    nearest = table[chosen[0]].clone()
    for _ in range(count - 1):
        if top == 1:
            chosen.append(int(nearest.argmax()))
        else:
            among = min(top, len(vectors) - len(chosen))
            chosen.append(int(nearest.topk(among).indices[torch.randint(among, (), generator=generator)]))
        torch.minimum(nearest, table[chosen[-1]], out=nearest)
    return torch.tensor(chosen)


class Coreset:
    """GC: m / n images spread as far as possible over a random big batch, each with n − 1 images of its class.

    `softened` takes a random one of the farthest 3 %; `projection` measures distances in that many random dimensions.

    >>> labels = torch.arange(8) // 2
    >>> bank = EmbeddingBank(images=8, dim=2)
    >>> bank.update(torch.arange(8), torch.randn(8, 2, generator=torch.Generator().manual_seed(0)))
    >>> [len(batch) for batch in Coreset(labels, bank, batch_size=4, per_class=2)]
    [4, 4]
    """

    __iter__, __len__, step = course.iterate, course.length, course.step
    set_epoch, state_dict, load_state_dict = course.set_epoch, course.state_dict, course.load_state_dict

    def __init__(
        self,
        labels: Integer[Tensor, " n"],
        bank: EmbeddingBank,
        batch_size: int = 112,
        per_class: int = 2,
        big_batch: int = 512,
        softened: bool = False,
        projection: int | None = None,
        batches: int | None = None,
        seed: int = 0,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        check_bank(bank, labels)
        check_divides(batch_size, per_class)
        points = batch_size // per_class
        check(points <= big_batch, f"{points} points cannot be chosen out of a big batch of {big_batch}")
        self.groups = Groups.of(labels)
        self.bank, self.big_batch, self.projection = bank, big_batch, projection
        self.choose = partial(farthest_first, softened=softened)
        count = epoch_length(len(labels), batch_size, batches)
        classes = self.groups.of_image
        self.course = Course(self.compose, classes, count, batch_size, per_class, seed, rank, ranks, True)

    def compose(self, generator: torch.Generator) -> Integer[Tensor, "batches m"]:
        """One epoch of batches, from the bank as it is now."""
        self.bank.check_ready()
        vectors = projected(self.bank.vectors, self.projection, generator)
        per_class = self.course.per_class
        shape = (self.course.batches, self.course.batch_size // per_class, per_class)
        return coresets(self.groups, vectors, self.big_batch, shape, self.choose, generator)
