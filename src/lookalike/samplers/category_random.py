"""FastAP's random batches: whole classes one after the other, whatever their category.

Cakir, He, Xia, Kulis, Sclaroff: Deep Metric Learning to Rank, CVPR 2019, supplement: the sampling that its category
batches are compared with. See also: category_pairs.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Integer
from torch import Tensor

from lookalike.errors import check
from lookalike.label_sets import Labels
from lookalike.samplers.batch_sampler import BatchSampler, shows_settings
from lookalike.samplers.grouping import Groups, whole_starts


@dataclass(frozen=True)
class Runs:
    """All classes one after the other, cut into batches."""

    classes: Groups
    batch_size: int
    per_class: int | None
    whole: bool

    def compose(self, batches: int, generator: torch.Generator) -> Integer[Tensor, "batches m"]:
        groups = self.classes.chunked(self.per_class, generator)
        images = groups.in_runs(generator)
        if not self.whole:
            return images[: batches * self.batch_size].view(batches, self.batch_size)
        sizes = groups.of_image[images].unique_consecutive(return_counts=True)[1]  # type: ignore[no-untyped-call]
        starts = torch.tensor(whole_starts(sizes.tolist(), self.batch_size, batches))
        return images[(starts[:, None] + torch.arange(self.batch_size)) % len(images)]


@shows_settings
def CategoryRandom(
    labels: Labels,
    batch_size: int = 256,
    per_class: int | None = None,
    whole: bool = False,
    *,
    seed: int = 0,
    rank: int = 0,
    ranks: int = 1,
) -> BatchSampler:
    """All classes in random order, the shuffled images of each together, cut into batches: no image twice in an epoch.

    `per_class`: how many images of a class stand together at most; None: all. `whole`: every batch begins with a whole
    class: the one that the batch before has cut comes again.

    >>> labels = torch.tensor([0, 0, 1, 1, 2, 2, 3, 3])
    >>> for batch in CategoryRandom(labels, batch_size=4):
    ...     print(len(set(batch)), labels[batch].unique_consecutive(return_counts=True)[1])
    4 tensor([2, 2])
    4 tensor([2, 2])
    """
    check(batch_size > 0, f"batch_size must be positive, not {batch_size}")
    groups = Groups.of(labels)
    runs = Runs(groups, batch_size, per_class, whole)
    return BatchSampler(runs.compose, groups.of_image, batch_size, seed=seed, rank=rank, ranks=ranks)
