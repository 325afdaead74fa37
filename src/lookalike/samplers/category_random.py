"""FastAP's random batches: whole classes one after the other, whatever their category.

Cakir, He, Xia, Kulis, Sclaroff: Deep Metric Learning to Rank, CVPR 2019, supplement: the sampling that its category
batches are compared with. See also: category_pairs.
"""

from functools import partial
from typing import Unpack

import torch
from jaxtyping import Integer
from torch import Tensor

from lookalike.errors import check
from lookalike.labels import Labels
from lookalike.samplers.batch_sampler import BatchSampler, Course, sampler
from lookalike.samplers.grouping import Groups


def cut_runs(groups: Groups, batch_size: int, batches: int, generator: torch.Generator) -> Integer[Tensor, "batches m"]:
    """All classes one after the other, cut into batches."""
    return groups.in_runs(generator)[: batches * batch_size].view(batches, batch_size)


@sampler
def CategoryRandom(labels: Labels, batch_size: int = 256, **course: Unpack[Course]) -> BatchSampler:
    """All classes in random order, the shuffled images of each together, cut into batches: no image twice in an epoch.

    >>> labels = torch.tensor([0, 0, 1, 1, 2, 2, 3, 3])
    >>> for batch in CategoryRandom(labels, batch_size=4):
    ...     print(len(set(batch)), labels[batch].unique_consecutive(return_counts=True)[1])
    4 tensor([2, 2])
    4 tensor([2, 2])
    """
    check(batch_size > 0, f"batch_size must be positive, not {batch_size}")
    groups = Groups.of(labels)
    return BatchSampler(partial(cut_runs, groups, batch_size), groups.of_image, batch_size, **course)
