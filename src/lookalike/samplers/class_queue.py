"""M images per class from queues: every image comes up before any of its class comes up again.

Gürbüz, Can, Alatan: Deep Metric Learning with Chance Constraints, WACV 2024, batches of 8 × 4.

Departs from the released code: where two rounds over the classes meet in one batch, and where a queue runs empty within
one visit, what the batch already holds is put off, so that a batch has 8 different classes and a visit 4 different
images; visits that fill no batch at the end of a pass are left out. See also: one_per_class, class_balanced.
"""

import torch
from jaxtyping import Integer
from torch import Tensor

from lookalike.samplers import course
from lookalike.samplers.class_balanced import classes_per_batch
from lookalike.samplers.course import Course
from lookalike.samplers.drawing import rounds
from lookalike.samplers.grouping import Groups


def visits_per_pass(groups: Groups, per_class: int) -> int:
    """How often a pass visits every class: ⌈N / (C · M)⌉."""
    return -(-len(groups.members) // (len(groups) * per_class))


def from_queues(
    groups: Groups, classes: int, per_class: int, generator: torch.Generator
) -> Integer[Tensor, "batches m"]:
    """One pass: every class is visited equally often, in an order reshuffled per round, and gives from its queue."""
    visits = visits_per_pass(groups, per_class)
    order = torch.tensor(rounds(len(groups), visits * len(groups), classes, generator))
    round_of = torch.arange(len(order)) // len(groups)
    queues = [rounds(size, visits * per_class, per_class, generator) for size in groups.sizes.tolist()]
    places = torch.tensor(queues).view(len(groups), visits, per_class)[order, round_of]
    images = groups.pick(order[:, None].expand(-1, per_class), places)
    batches = len(images) // classes
    return images[: batches * classes].view(batches, -1)


class ClassQueue:
    """M-per-class: all classes in turn, M images each from the class's own shuffled queue, refilled when empty.

    >>> labels = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2])
    >>> sampler = ClassQueue(labels, batch_size=4, per_class=2)
    >>> sorted(image for batch in sampler for image in batch)
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    """

    __iter__, __len__, step = course.iterate, course.length, course.step
    set_epoch, state_dict, load_state_dict = course.set_epoch, course.state_dict, course.load_state_dict

    def __init__(
        self,
        labels: Integer[Tensor, " n"],
        batch_size: int = 32,
        per_class: int = 4,
        seed: int = 0,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        self.groups = Groups.of(labels)
        self.classes = classes_per_batch(self.groups, batch_size, per_class)
        count = visits_per_pass(self.groups, per_class) * len(self.groups) // self.classes
        self.course = Course(self.compose, self.groups.of_image, count, batch_size, per_class, seed, rank, ranks)

    def compose(self, generator: torch.Generator) -> Integer[Tensor, "batches m"]:
        """One pass over the classes."""
        return from_queues(self.groups, self.classes, self.course.per_class, generator)
