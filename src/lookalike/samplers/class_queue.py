"""M images per class from queues: every image comes up before any of its class comes up again.

Gürbüz, Can, Alatan: Deep Metric Learning with Chance Constraints, WACV 2024, batches of 8 × 4.

Departs from the released code: where two rounds over the classes meet in one batch, and where a queue runs empty within
one visit, what the batch already holds is postponed, so that a batch has 8 different classes and a visit 4 different
images; visits that do not fill a batch at the end of a pass are left out. See also: one_per_class, class_balanced.
"""

from functools import partial

import torch
from jaxtyping import Integer
from torch import Tensor

from lookalike.label_sets import Labels
from lookalike.samplers.batch_sampler import BatchSampler, shows_settings
from lookalike.samplers.drawing import rounds
from lookalike.samplers.grouping import Groups, classes_per_batch


def from_queues(
    groups: Groups, visits: int, shape: tuple[int, int], batches: int, generator: torch.Generator
) -> Integer[Tensor, "batches m"]:
    """One pass: every class is visited equally often, in an order reshuffled per round, and gives from its queue."""
    classes, per_class = shape
    order = torch.tensor(rounds(len(groups), visits * len(groups), classes, generator))
    round_of = torch.arange(len(order)) // len(groups)
    queues = [rounds(size, visits * per_class, per_class, generator) for size in groups.sizes.tolist()]
    places = torch.tensor(queues).view(len(groups), visits, per_class)[order, round_of]
    images = groups.pick(order[:, None].expand(-1, per_class), places)
    return images[: batches * classes].view(batches, -1)


@shows_settings
def ClassQueue(
    labels: Labels,
    batch_size: int = 32,
    per_class: int = 4,
    *,
    seed: int = 0,
    rank: int = 0,
    ranks: int = 1,
) -> BatchSampler:
    """M-per-class: all classes in turn, M images each from the class's own shuffled queue, refilled when empty.

    >>> labels = torch.tensor([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2])
    >>> sampler = ClassQueue(labels, batch_size=4, per_class=2)
    >>> sorted(image for batch in sampler for image in batch)
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    """
    groups = Groups.of(labels)
    classes = classes_per_batch(groups, batch_size, per_class)
    visits = -(-len(groups.members) // (len(groups) * per_class))  # of every class in a pass: ⌈N / (C · M)⌉
    compose = partial(from_queues, groups, visits, (classes, per_class))
    return BatchSampler(
        compose,
        groups.of_image,
        batch_size,
        per_class,
        visits * len(groups) // classes,
        seed=seed,
        rank=rank,
        ranks=ranks,
    )
