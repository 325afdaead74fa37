"""Random batches with one positive pair for certain, SPC-R.

Roth, Milbich, Sinha, Gupta, Ommer, Cohen: Revisiting Training Strategies and Generalization Performance in Deep Metric
Learning, ICML 2020.

Departs from the released code: the last image is another one of its class, never the same again, and belongs to a class
with at least two images. See also: class_balanced.
"""

from functools import partial

import torch
from jaxtyping import Integer
from torch import Tensor

from lookalike.errors import check
from lookalike.label_sets import Labels
from lookalike.samplers.batch_sampler import BatchSampler, shows_settings
from lookalike.samplers.drawing import uniform
from lookalike.samplers.grouping import Groups


def with_a_pair(
    groups: Groups, batch_size: int, batches: int, generator: torch.Generator
) -> Integer[Tensor, "batches m"]:
    """Random images of random classes; the last image of a batch shares its class with another one."""
    classes = uniform(torch.full((batches, batch_size - 1), len(groups)), generator)
    several = (groups.sizes > 1).nonzero()[:, 0]
    # A batch whose classes all have one image has no class to pair within: its first class is replaced.
    lone = (groups.sizes[classes] < 2).all(1)
    classes[lone, 0] = several[uniform(torch.full((int(lone.sum()),), len(several)), generator)]
    places = uniform(groups.sizes[classes], generator)

    member = torch.multinomial((groups.sizes[classes] > 1).double(), 1, generator=generator)
    paired, place = classes.gather(1, member), places.gather(1, member)
    other = uniform(groups.sizes[paired] - 1, generator)
    other += other >= place
    return groups.pick(torch.cat([classes, paired], 1), torch.cat([places, other], 1))


@shows_settings
def ClassRandom(
    labels: Labels,
    batch_size: int = 112,
    batches: int | None = None,
    *,
    seed: int = 0,
    rank: int = 0,
    ranks: int = 1,
) -> BatchSampler:
    """SPC-R: m − 1 times a random class and a random image of it, then a second image of the class of one of them.

    >>> labels = torch.tensor([0, 0, 1, 1, 2, 2, 3, 3])
    >>> for batch in ClassRandom(labels, batch_size=4):
    ...     *others, last = labels[batch].tolist()
    ...     print(last in others)
    True
    True
    """
    check(batch_size > 1, f"a batch with a positive pair has at least 2 images, not {batch_size}")
    groups = Groups.of(labels)
    check(bool((groups.sizes > 1).any()), "no class has two images: no batch can hold a positive pair")
    return BatchSampler(
        partial(with_a_pair, groups, batch_size),
        groups.of_image,
        batch_size,
        1,
        batches,
        seed=seed,
        rank=rank,
        ranks=ranks,
    )
