"""Batches chosen out of a bigger one by its embeddings: what DDM, FRD and the two coresets share.

Roth, Milbich, Sinha, Gupta, Ommer, Cohen: Revisiting Training Strategies and Generalization Performance in Deep Metric
Learning, ICML 2020, and released code.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from lookalike.errors import check
from lookalike.samplers.bank import EmbeddingBank
from lookalike.samplers.batch_sampler import BatchSampler
from lookalike.samplers.drawing import distinct_if_possible, rounds, uniform
from lookalike.samplers.grouping import Groups, check_divides, classes_per_batch

LARGE = 1e15  # coordinates whose squares, added up, leave the range of float32
Cost = Callable[[Float[Tensor, "b d"], Integer[Tensor, "k m"]], Float[Tensor, " k"]]
Choose = Callable[[Float[Tensor, "b d"], int, torch.Generator], Integer[Tensor, " points"]]


def pairwise(vectors: Float[Tensor, "b d"]) -> Float[Tensor, "b b"]:
    """Euclidean distances of all pairs."""
    # Distances do not change when all points move; around their mean, the product of large vectors cancels less.
    centred = vectors - vectors.mean(0)
    table: Tensor = torch.cdist(centred, centred, compute_mode="use_mm_for_euclid_dist")
    return table.fill_diagonal_(0.0)


@dataclass(frozen=True)
class Matching:
    """Out of a big batch by classes, the one of several candidate batches with the lowest cost."""

    groups: Groups
    batch_size: int
    per_class: int
    big_batch: int
    candidates: int
    roth: bool
    cost: Cost

    def __post_init__(self) -> None:
        big, n, m = self.big_batch, self.per_class, self.batch_size
        classes_per_batch(self.groups, m, n)
        check(m > 1, f"a batch of {m} has no distances to match: choose a larger batch_size")
        check(big % n == 0, f"{n} images per class do not divide a big batch of {big}: choose a multiple")
        check(big >= m, f"the big batch ({big}) must be at least as large as the batch ({m})")
        check(self.candidates > 0, f"there must be at least one candidate, not {self.candidates}")

    def big(self, generator: torch.Generator) -> Integer[Tensor, " b"]:
        """A big batch: n images of random classes, every class coming up before any comes up again."""
        count, classes = self.big_batch // self.per_class, len(self.groups)
        if self.roth:
            turn = uniform(torch.full((count,), classes), generator)
            places = uniform(self.groups.sizes[turn, None].expand(-1, self.per_class), generator)
            return self.groups.pick(turn[:, None].expand_as(places), places).flatten()
        visits = torch.full((classes,), count // classes)
        visits[torch.randperm(classes, generator=generator)[: count % classes]] += 1
        parts = []
        for times in sorted({count // classes, count // classes + 1} - {0}):
            turn = (visits == times).nonzero()[:, 0]
            places = distinct_if_possible(self.groups.sizes[turn], times * self.per_class, generator)
            parts.append(self.groups.pick(turn[:, None].expand_as(places), places).flatten())
        return torch.cat(parts)

    def draw(self, big: Integer[Tensor, " b"], generator: torch.Generator) -> Integer[Tensor, "k m"]:
        """Candidates as places in the big batch: m / n of its classes, n of its images of each."""
        inside = Groups.of(self.groups.of_image[big])
        count = self.batch_size // self.per_class
        if self.roth:
            classes = uniform(torch.full((self.candidates, count), len(inside)), generator)
        else:
            classes = torch.rand(self.candidates, len(inside), generator=generator).argsort(1)[:, :count]
        classes = classes.flatten()
        places = distinct_if_possible(inside.sizes[classes], self.per_class, generator)
        return inside.pick(classes[:, None].expand_as(places), places).view(self.candidates, -1)

    def best(self, vectors: Float[Tensor, "n d"], generator: torch.Generator) -> Integer[Tensor, " m"]:
        """One batch: the candidate of the lowest cost."""
        big = self.big(generator)
        places = self.draw(big, generator)
        return big[places[self.cost(vectors[big], places).argmin()]]

    def compose(
        self, vectors: Float[Tensor, "n d"], batches: int, generator: torch.Generator
    ) -> Integer[Tensor, "batches m"]:
        return torch.stack([self.best(vectors, generator) for _ in range(batches)])


@dataclass(frozen=True)
class Covering:
    """Out of a random big batch, m / n points that cover it, each completed by images of its class."""

    groups: Groups
    batch_size: int
    per_class: int
    big_batch: int
    projection: int | None
    choose: Choose

    def __post_init__(self) -> None:
        check_divides(self.batch_size, self.per_class)
        big, points, dim = self.big_batch, self.batch_size // self.per_class, self.projection
        check(points <= big, f"{points} points cannot be chosen out of a big batch of {big}")
        check(dim is None or dim > 0, f"projection must be a positive number of dimensions, not {dim}")

    def projected(self, vectors: Float[Tensor, "n d"], generator: torch.Generator) -> Float[Tensor, "n p"]:
        """The vectors in `projection` random dimensions, squared distances kept on average; None: as they are."""
        if self.projection is None:
            return vectors
        directions: Tensor = torch.randn(vectors.shape[1], self.projection, generator=generator) / self.projection**0.5
        return vectors @ directions

    def compose(
        self, vectors: Float[Tensor, "n d"], batches: int, generator: torch.Generator
    ) -> Integer[Tensor, "batches m"]:
        points = self.projected(vectors, generator)
        rows = []
        for _ in range(batches):
            # The places are those of this very big batch (the released code looks them up in another one).
            big = torch.randperm(len(points), generator=generator)[: self.big_batch]
            images = big[self.choose(points[big], self.batch_size // self.per_class, generator)]
            rows.append(completed(self.groups, images.tolist(), self.per_class, generator))
        return torch.tensor(rows)


def completed(groups: Groups, images: list[int], per_class: int, generator: torch.Generator) -> list[int]:
    """Each image followed by n − 1 others of its class; none twice in the batch, as long as the class has others.

    >>> completed(Groups.of(torch.tensor([0, 1, 0, 1])), [2, 1], 2, torch.Generator())
    [2, 0, 1, 3]
    """
    points = set(images)
    free: dict[int, list[int]] = {}
    batch = []
    for image, group in zip(images, groups.of_image[images].tolist(), strict=True):
        members = groups.members[groups.starts[group] :][: groups.sizes[group]]
        if group not in free:
            members = members[torch.randperm(len(members), generator=generator)]
            free[group] = [other for other in members.tolist() if other not in points]
        mates, free[group] = free[group][: per_class - 1], free[group][per_class - 1 :]
        again = [other for other in members.tolist() if other != image] or [image]
        mates += [again[place] for place in rounds(len(again), per_class - 1 - len(mates), 1, generator)]
        batch += [image, *mates]
    return batch


def from_bank(
    bank: EmbeddingBank, method: Matching | Covering, batches: int | None, *, seed: int, rank: int, ranks: int
) -> BatchSampler:
    """A sampler that composes an epoch from the bank as it is when the epoch begins."""
    classes = method.groups.of_image
    check(
        len(bank) == len(classes),
        f"the bank holds {len(bank)} images, there are {len(classes)} labels: they must agree",
    )
    compose, size = partial(_compose, bank, method), (method.batch_size, method.per_class, batches)
    return BatchSampler(compose, classes, *size, keeps_batches=True, seed=seed, rank=rank, ranks=ranks)


def _compose(
    bank: EmbeddingBank, method: Matching | Covering, batches: int, generator: torch.Generator
) -> Integer[Tensor, "batches m"]:
    bank.check_ready()
    largest = float(bank.vectors.abs().max())
    # which points lie far apart does not depend on the unit, but squares overflow
    vectors = bank.vectors if largest < LARGE else bank.vectors / largest
    return method.compose(vectors, batches, generator)
