"""Category batches: half a batch from each of two categories, where the hard negatives are.

Cakir, He, Xia, Kulis, Sclaroff: Deep Metric Learning to Rank, CVPR 2019, supplement.

Departs from the paper: in the partly labelled form the number of batches of a category is rounded up, as in the
released code, unless `round_up` is false [math ERR-26]. Departs from the released code: images are shuffled within
their class too, and the categories of the partly labelled form come in random order. See also: category_random.
"""

from dataclasses import dataclass
from math import comb

import torch
from jaxtyping import Integer
from torch import Tensor

from lookalike.errors import check
from lookalike.label_sets import Labels
from lookalike.labels import joint_labels
from lookalike.samplers.batch_sampler import BatchSampler, shows_settings
from lookalike.samplers.drawing import distinct
from lookalike.samplers.grouping import Groups, whole_starts

PRESETS = {
    "sop": {"batches_per_combination": 5},
    "inshop": {"batches_per_combination": 2},
    "vehicle_id": {"round_up": False},
}
UNKNOWN = -1
LIMIT = 20_000  # combinations of categories; with more, an epoch takes too long and too much memory


def occurrence(values: Integer[Tensor, " n"]) -> Integer[Tensor, " n"]:
    """How many equal values come before each.

    >>> occurrence(torch.tensor([4, 7, 4, 4]))
    tensor([0, 0, 1, 2])
    """
    groups = Groups.of(values)
    before = torch.empty_like(values)
    before[groups.members] = torch.arange(len(values)) - groups.starts[groups.of_image[groups.members]]
    return before


@dataclass(frozen=True)
class Combinations:
    """Which categories meet in a batch, and which of their images."""

    classes: Groups
    categories: Groups
    together: int  # c, categories in a batch
    part: int  # M / c, images of each
    repeats: int  # r, batches of each combination
    partly: bool  # some images have no category
    per_class: int | None  # images of a class that stand together; None: all
    whole: bool  # a part of a batch begins with a whole class
    round_up: bool  # partly: the batches of every category are rounded up, not those of an epoch

    def check_possible(self, batches: int | None) -> None:
        known, c = len(self.categories), self.together
        if self.partly:
            check(c == 2, f"images without a category fill half of each batch: categories_per_batch must be 2, not {c}")
            check(batches is None, "with images without a category, every category sets its number of batches itself")
            check(known > 1, "no image has a category (all are -1): use category_random")
            return
        check(c <= known, f"a batch mixes {c} categories, the data has {known}: choose a smaller categories_per_batch")
        check(self.repeats > 0, f"batches_per_combination must be positive, not {self.repeats}")
        check(
            comb(known, c) <= LIMIT or batches is not None,
            f"{known} categories have {comb(known, c):,} combinations of {c}: set batches, the number of batches in "
            "an epoch",
        )

    def batches(self) -> int:
        """The batches of an epoch in which every combination has its turns."""
        if self.partly:
            return int(self._parts(torch.arange(len(self.categories) - 1)).sum())
        return comb(len(self.categories), self.together) * self.repeats

    def _parts(self, order: Integer[Tensor, " labelled"]) -> Integer[Tensor, " labelled"]:
        """The batches of each category that has a name, in that order."""
        sizes = self.categories.sizes[1:][order]  # −1 is the smallest category: the images without one are group 0
        if self.round_up:
            return (sizes + self.part - 1) // self.part
        ends = (sizes.cumsum(0) + self.part // 2) // self.part  # the sum alone is rounded, whatever the order
        return ends.diff(prepend=ends.new_zeros(1))

    def visits(self, batches: int, generator: torch.Generator) -> Integer[Tensor, "batches c"]:
        """The categories of every batch."""
        if self.partly:
            order = torch.randperm(len(self.categories) - 1, generator=generator)
            labelled = (order + 1).repeat_interleave(self._parts(order))
            return torch.stack([labelled, torch.zeros_like(labelled)], 1)
        known = len(self.categories)
        if comb(known, self.together) > LIMIT:
            return distinct(torch.full((batches,), known), self.together, generator)
        every = torch.combinations(torch.arange(known), self.together)
        order = torch.randperm(len(every), generator=generator).repeat_interleave(self.repeats)
        return every[order.repeat(-(-batches // len(order)))[:batches]]

    def compose(self, batches: int, generator: torch.Generator) -> Integer[Tensor, "batches m"]:
        classes = self.classes.chunked(self.per_class, generator)
        runs = classes.in_runs(generator)
        images = runs[self.categories.of_image[runs].argsort(stable=True)]
        category = self.visits(batches, generator).flatten()
        place = self._begins(category, classes.of_image[images])[:, None] + torch.arange(self.part)
        place %= self.categories.sizes[category, None]
        return images[self.categories.starts[category, None] + place].view(batches, -1)

    def _begins(self, category: Integer[Tensor, " visits"], classes: Integer[Tensor, " n"]) -> Tensor:
        """Where in its category each visit begins: a cyclic pointer; the k-th takes images k·M/c … (k+1)·M/c − 1."""
        turn = occurrence(category)
        if not self.whole:
            return turn * self.part
        begins = torch.empty_like(turn)
        for number in category.unique().tolist():  # type: ignore[no-untyped-call]
            start, size = int(self.categories.starts[number]), int(self.categories.sizes[number])
            sizes = classes[start : start + size].unique_consecutive(return_counts=True)[1]  # type: ignore[no-untyped-call]
            visits = category == number
            begins[visits] = torch.tensor(whole_starts(sizes.tolist(), self.part, int(visits.sum())))[turn[visits]]
        return begins


@shows_settings
def CategoryPairs(
    labels: Labels,
    categories: Labels,
    batch_size: int = 256,
    categories_per_batch: int = 2,
    batches_per_combination: int = 5,
    batches: int | None = None,
    per_class: int | None = None,
    whole: bool = False,
    round_up: bool = True,
    *,
    seed: int = 0,
    rank: int = 0,
    ranks: int = 1,
) -> BatchSampler:
    """FastAP's hard batches: every pair of categories r times, each time the next M/2 images of both, class by class.

    `categories`: that of every image. `batches_per_combination` is r. `categories_per_batch` = c makes it every c of
    them, M/c images each. A category begins again when it runs out (one with fewer images than its part of a batch
    repeats them in it). `batches` ends the epoch after that many.
    `per_class`: how many images of a class stand together at most; None: all. `whole`: each category's part begins with
    a whole class: the one that its last part has cut comes again. An image of category −1 has none: then every batch
    pairs M/2 images of one category with M/2 of those, and a category of N images has ⌈2N/M⌉ batches; with `round_up`
    false an epoch has Σ 2N/M of them, rounded once.

    >>> labels = torch.tensor([0, 0, 1, 1, 2, 2, 3, 3])
    >>> sampler = CategoryPairs(labels, categories=labels // 2, batch_size=4, batches_per_combination=2)
    >>> sorted(image for batch in sampler for image in batch)
    [0, 1, 2, 3, 4, 5, 6, 7]
    """
    check(len(labels) == len(categories), f"{len(categories)} categories for {len(labels)} labels: give one per label")
    c = categories_per_batch
    check(
        c > 0 and batch_size > 0 and batch_size % c == 0,
        f"{c} categories do not share a batch of {batch_size} evenly: choose a batch_size that is a multiple",
    )
    classes, (numbers,) = Groups.of(labels), joint_labels(categories)
    partly = bool((numbers == UNKNOWN).any())
    mix = Combinations(
        classes, Groups.of(numbers), c, batch_size // c, batches_per_combination, partly, per_class, whole, round_up
    )
    mix.check_possible(batches)
    count = mix.batches() if batches is None else batches
    return BatchSampler(mix.compose, classes.of_image, batch_size, batches=count, seed=seed, rank=rank, ranks=ranks)
