"""One image per class, for losses whose positives are proxies.

Gürbüz, Can, Alatan: Deep Metric Learning with Chance Constraints, WACV 2024, batches of 32 × 1.

Departs from the released code as class_queue does. See also: class_queue.
"""

import torch
from jaxtyping import Integer
from torch import Tensor

from lookalike.samplers import course
from lookalike.samplers.class_balanced import classes_per_batch
from lookalike.samplers.class_queue import from_queues, visits_per_pass
from lookalike.samplers.course import Course
from lookalike.samplers.grouping import Groups


class OnePerClass:
    """As many classes as the batch is large, one image of each: no two images of a batch are positives.

    >>> labels = torch.tensor([0, 0, 1, 1, 2, 2])
    >>> [sorted(labels[batch].tolist()) for batch in OnePerClass(labels, batch_size=3)]
    [[0, 1, 2], [0, 1, 2]]
    """

    __iter__, __len__, step = course.iterate, course.length, course.step
    set_epoch, state_dict, load_state_dict = course.set_epoch, course.state_dict, course.load_state_dict

    def __init__(
        self, labels: Integer[Tensor, " n"], batch_size: int = 32, seed: int = 0, rank: int = 0, ranks: int = 1
    ) -> None:
        self.groups = Groups.of(labels)
        self.classes = classes_per_batch(self.groups, batch_size, 1)
        count = visits_per_pass(self.groups, 1) * len(self.groups) // self.classes
        self.course = Course(self.compose, self.groups.of_image, count, batch_size, 1, seed, rank, ranks)

    def compose(self, generator: torch.Generator) -> Integer[Tensor, "batches m"]:
        """One pass over the classes."""
        return from_queues(self.groups, self.classes, 1, generator)
