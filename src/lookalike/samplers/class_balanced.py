"""Class-balanced batches, SPC-n: m / n classes with n images each.

Roth, Milbich, Sinha, Gupta, Ommer, Cohen: Revisiting Training Strategies and Generalization Performance in Deep Metric
Learning, ICML 2020.

Departs from the released code: there, classes and images are drawn with replacement, so that a class, or even an
image, may occur twice in a batch; `roth=True` does the same. See also: class_random, class_queue.
"""

import torch
from jaxtyping import Integer
from torch import Tensor

from lookalike.errors import check
from lookalike.samplers import course
from lookalike.samplers.course import Course, epoch_length
from lookalike.samplers.drawing import distinct, distinct_if_possible, uniform
from lookalike.samplers.grouping import Groups


def check_divides(batch_size: int, per_class: int) -> None:
    check(
        per_class > 0 and batch_size > 0 and batch_size % per_class == 0,
        f"{per_class} images per class do not divide a batch of {batch_size}: choose a batch_size that is a multiple",
    )


def classes_per_batch(groups: Groups, batch_size: int, per_class: int) -> int:
    """m / n, once it is clear that it can be done with different classes."""
    check_divides(batch_size, per_class)
    classes = batch_size // per_class
    check(
        classes <= len(groups),
        f"a batch of {batch_size} with {per_class} per class needs {classes} classes, the data has {len(groups)}: "
        "choose a smaller batch_size or a larger per_class",
    )
    return classes


class ClassBalanced:
    """SPC-n: different random classes, the same number of different random images of each.

    A class with fewer than `per_class` images repeats some of them.

    >>> labels = torch.tensor([5, 5, 5, 7, 7, 7, 9, 9, 9])
    >>> for batch in ClassBalanced(labels, batch_size=4, per_class=2):
    ...     print(len(set(batch)), labels[batch].unique(return_counts=True)[1])
    4 tensor([2, 2])
    4 tensor([2, 2])
    """

    __iter__, __len__, step = course.iterate, course.length, course.step
    set_epoch, state_dict, load_state_dict = course.set_epoch, course.state_dict, course.load_state_dict

    def __init__(
        self,
        labels: Integer[Tensor, " n"],
        batch_size: int = 112,
        per_class: int = 2,
        roth: bool = False,
        batches: int | None = None,
        seed: int = 0,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        self.groups = Groups.of(labels)
        self.classes = classes_per_batch(self.groups, batch_size, per_class)
        self.roth = roth
        count = epoch_length(len(labels), batch_size, batches)
        self.course = Course(self.compose, self.groups.of_image, count, batch_size, per_class, seed, rank, ranks)

    def compose(self, generator: torch.Generator) -> Integer[Tensor, "batches m"]:
        """One epoch of batches."""
        batches, per_class = self.course.batches, self.course.per_class
        everyone = torch.full((batches,), len(self.groups))
        if self.roth:
            classes = uniform(everyone[:, None].expand(-1, self.classes), generator)
        else:
            classes = distinct(everyone, self.classes, generator)
        classes = classes.flatten()
        sizes = self.groups.sizes[classes]
        if self.roth:
            places = uniform(sizes[:, None].expand(-1, per_class), generator)
        else:
            places = distinct_if_possible(sizes, per_class, generator)
        return self.groups.pick(classes[:, None].expand(-1, per_class), places).view(batches, -1)
