"""Class-balanced batches, SPC-n: m / n classes with n images each.

Roth, Milbich, Sinha, Gupta, Ommer, Cohen: Revisiting Training Strategies and Generalization Performance in Deep Metric
Learning, ICML 2020.

Departs from the released code: there, classes and images are drawn with replacement, so that a class, or even an
image, may occur twice in a batch; `roth=True` does the same. See also: class_random, class_queue.
"""

from functools import partial

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from lookalike.label_sets import Labels
from lookalike.samplers.batch_sampler import BatchSampler, shows_settings
from lookalike.samplers.drawing import distinct, distinct_if_possible, uniform, weighted
from lookalike.samplers.grouping import Groups, classes_per_batch

LEAST = 1e-3  # chance, so that every image can be drawn


def balanced(
    groups: Groups,
    shape: tuple[int, int],
    roth: bool,
    weights: Float[Tensor, "groups width"] | None,
    batches: int,
    generator: torch.Generator,
) -> Integer[Tensor, "batches m"]:
    """Batches of shape (classes, images per class); `weights` of the images of each group, none: all are alike."""
    count, per_class = shape
    everyone = torch.full((batches,), len(groups))
    if roth:
        classes = uniform(everyone[:, None].expand(-1, count), generator)
    else:
        classes = distinct(everyone, count, generator)
    classes = classes.flatten()
    sizes = groups.sizes[classes]
    if weights is not None:
        places = weighted(weights, classes, per_class, generator)
    elif roth:
        places = uniform(sizes[:, None].expand(-1, per_class), generator)
    else:
        places = distinct_if_possible(sizes, per_class, generator)
    return groups.pick(classes[:, None].expand(-1, per_class), places).view(batches, -1)


@shows_settings
def ClassBalanced(
    labels: Labels,
    batch_size: int = 112,
    per_class: int = 2,
    roth: bool = False,
    batches: int | None = None,
    *,
    chances: Float[Tensor, " n"] | None = None,
    seed: int = 0,
    rank: int = 0,
    ranks: int = 1,
) -> BatchSampler:
    """SPC-n: different random classes, the same number of different random images of each.

    A class with fewer than `per_class` images repeats some of them. Of images with several labels, each label is a
    class; an unlabelled image is a class of its own and comes in `per_class` views. With `chances`, how likely each
    label is right, images of a class are drawn in proportion to them.

    >>> labels = torch.tensor([5, 5, 5, 7, 7, 7, 9, 9, 9])
    >>> for batch in ClassBalanced(labels, batch_size=4, per_class=2):
    ...     print(len(set(batch)), labels[batch].unique(return_counts=True)[1])
    4 tensor([2, 2])
    4 tensor([2, 2])
    """
    groups = Groups.sharing(labels)
    classes = classes_per_batch(groups, batch_size, per_class)
    weights = None if chances is None else _of_groups(groups, chances.clamp(min=LEAST))
    compose = partial(balanced, groups, (classes, per_class), roth, weights)
    return BatchSampler(compose, groups.of_image, batch_size, per_class, batches, seed=seed, rank=rank, ranks=ranks)


def _of_groups(groups: Groups, values: Float[Tensor, " n"]) -> Float[Tensor, "groups width"]:
    """The values of the images of every group, in its order; 0 where it has no more."""
    result = torch.zeros(len(groups), int(groups.sizes.max()))
    group = torch.arange(len(groups)).repeat_interleave(groups.sizes)
    result[group, torch.arange(len(group)) - groups.starts[group]] = values[groups.members].float()
    return result
