"""FastAP's random batches: whole classes one after the other, whatever their category.

Cakir, He, Xia, Kulis, Sclaroff: Deep Metric Learning to Rank, CVPR 2019, supplement: the sampling that its category
batches are compared with. See also: category_pairs.
"""

import torch
from jaxtyping import Integer
from torch import Tensor

from lookalike.errors import check
from lookalike.samplers import course
from lookalike.samplers.course import Course, epoch_length
from lookalike.samplers.grouping import Groups


class CategoryRandom:
    """All classes in random order, the shuffled images of each together, cut into batches: no image twice in an epoch.

    >>> labels = torch.tensor([0, 0, 1, 1, 2, 2, 3, 3])
    >>> for batch in CategoryRandom(labels, batch_size=4):
    ...     print(len(set(batch)), labels[batch].unique_consecutive(return_counts=True)[1])
    4 tensor([2, 2])
    4 tensor([2, 2])
    """

    __iter__, __len__, step = course.iterate, course.length, course.step
    set_epoch, state_dict, load_state_dict = course.set_epoch, course.state_dict, course.load_state_dict

    def __init__(
        self, labels: Integer[Tensor, " n"], batch_size: int = 256, seed: int = 0, rank: int = 0, ranks: int = 1
    ) -> None:
        check(batch_size > 0, f"batch_size must be positive, not {batch_size}")
        self.groups = Groups.of(labels)
        count = epoch_length(len(labels), batch_size, None)
        self.course = Course(self.compose, self.groups.of_image, count, batch_size, seed=seed, rank=rank, ranks=ranks)

    def compose(self, generator: torch.Generator) -> Integer[Tensor, "batches m"]:
        """One epoch of batches."""
        batches, m = self.course.batches, self.course.batch_size
        return self.groups.in_runs(generator)[: batches * m].view(batches, m)
