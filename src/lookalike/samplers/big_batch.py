"""Batches chosen out of a bigger one by what the network thinks of it: what DDM, FRD and the two coresets share.

Roth, Milbich, Sinha, Gupta, Ommer, Cohen: Revisiting Training Strategies and Generalization Performance in Deep Metric
Learning, ICML 2020, and released code.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from lookalike.errors import check
from lookalike.samplers.bank import EmbeddingBank
from lookalike.samplers.drawing import distinct_if_possible, rounds, uniform
from lookalike.samplers.grouping import Groups

Cost = Callable[[Float[Tensor, "b d"], Integer[Tensor, "k m"]], Float[Tensor, " k"]]


def check_bank(bank: EmbeddingBank, labels: Tensor) -> None:
    check(
        len(bank) == len(labels), f"the bank holds {len(bank)} images, there are {len(labels)} labels: they must agree"
    )


def pairwise(vectors: Float[Tensor, "b d"]) -> Float[Tensor, "b b"]:
    """Euclidean distances of all pairs."""
    # Distances do not change when all points move; around their mean, the product of large vectors cancels less.
    centred = vectors - vectors.mean(0)
    table: Tensor = torch.cdist(centred, centred, compute_mode="use_mm_for_euclid_dist")
    return table.fill_diagonal_(0.0)


def projected(vectors: Float[Tensor, "n d"], dim: int | None, generator: torch.Generator) -> Float[Tensor, "n p"]:
    """The vectors in `dim` random dimensions, squared distances kept on average; None: as they are."""
    if dim is None:
        return vectors
    check(dim > 0, f"projection must be a positive number of dimensions, not {dim}")
    directions: Tensor = torch.randn(vectors.shape[1], dim, generator=generator) / dim**0.5
    return vectors @ directions


@dataclass(frozen=True)
class Matching:
    """How candidates are made: a big batch by classes, then `candidates` batches out of it."""

    groups: Groups
    batch_size: int
    per_class: int
    big_batch: int
    candidates: int
    roth: bool

    def __post_init__(self) -> None:
        big, n, m = self.big_batch, self.per_class, self.batch_size
        check(m > 1, f"a batch of {m} has no distances to match: choose a larger batch_size")
        check(big % n == 0, f"{n} images per class do not divide a big batch of {big}: choose a multiple")
        check(big >= m, f"the big batch ({big}) must be at least as large as the batch ({m})")
        check(self.candidates > 0, f"there must be at least one candidate, not {self.candidates}")

    def big(self, generator: torch.Generator) -> Integer[Tensor, " b"]:
        """A big batch: n images of each class drawn, every class coming up before any comes up again."""
        count, classes = self.big_batch // self.per_class, len(self.groups)
        if self.roth:
            drawn = uniform(torch.full((count,), classes), generator)
            places = uniform(self.groups.sizes[drawn, None].expand(-1, self.per_class), generator)
            return self.groups.pick(drawn[:, None].expand_as(places), places).flatten()
        visits = torch.full((classes,), count // classes)
        visits[torch.randperm(classes, generator=generator)[: count % classes]] += 1
        parts = []
        for times in sorted({count // classes, count // classes + 1} - {0}):
            drawn = (visits == times).nonzero()[:, 0]
            places = distinct_if_possible(self.groups.sizes[drawn], times * self.per_class, generator)
            parts.append(self.groups.pick(drawn[:, None].expand_as(places), places).flatten())
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

    def best(self, bank: EmbeddingBank, cost: Cost, generator: torch.Generator) -> Integer[Tensor, " m"]:
        """One batch: the candidate of the lowest cost."""
        big = self.big(generator)
        places = self.draw(big, generator)
        return big[places[cost(bank.vectors[big], places).argmin()]]


def completed(groups: Groups, images: list[int], per_class: int, generator: torch.Generator) -> list[int]:
    """Each image followed by n − 1 others of its class; none twice in the batch, as long as the class has others.

    >>> completed(Groups.of(torch.tensor([0, 1, 0, 1])), [2, 1], 2, torch.Generator())
    [2, 0, 1, 3]
    """
    chosen = set(images)
    free: dict[int, list[int]] = {}
    batch = []
    for image, group in zip(images, groups.of_image[images].tolist(), strict=True):
        members = groups.members[groups.starts[group] :][: groups.sizes[group]]
        if group not in free:
            members = members[torch.randperm(len(members), generator=generator)]
            free[group] = [other for other in members.tolist() if other not in chosen]
        mates, free[group] = free[group][: per_class - 1], free[group][per_class - 1 :]
        again = [other for other in members.tolist() if other != image] or [image]
        mates += [again[place] for place in rounds(len(again), per_class - 1 - len(mates), 1, generator)]
        batch += [image, *mates]
    return batch


def coresets(
    groups: Groups,
    vectors: Float[Tensor, "n d"],
    big_batch: int,
    shape: tuple[int, int, int],
    choose: Callable[[Tensor, int, torch.Generator], Tensor],
    generator: torch.Generator,
) -> Integer[Tensor, "batches m"]:
    """`shape` = batches, points, per_class: out of a new random big batch each, `points` images and their mates."""
    batches, points, per_class = shape
    rows = []
    for _ in range(batches):
        # The places chosen are places in this very big batch (the released code looks them up in another one).
        big = torch.randperm(len(vectors), generator=generator)[:big_batch]
        images = big[choose(vectors[big], points, generator)]
        rows.append(completed(groups, images.tolist(), per_class, generator))
    return torch.tensor(rows)
