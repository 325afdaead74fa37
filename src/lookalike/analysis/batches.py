"""What a sampler's batches look like: classes, images per class, categories, repeats, and distances [math C].

A loss can only learn from the pairs that meet in a batch: how many positive pairs there are, how near the nearest
negative is, and how much of the data an epoch shows at all.
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from lookalike.errors import check
from lookalike.targets import Pairs


class BatchSpread(NamedTuple):
    """The mean and the extremes of a number over the batches."""

    mean: float
    least: float
    most: float

    @staticmethod
    def of(values: Iterable[float]) -> "BatchSpread":
        """
        >>> BatchSpread.of([1, 2, 6])
        BatchSpread(mean=3.0, least=1, most=6)
        """
        numbers = list(values)
        return BatchSpread(sum(numbers) / len(numbers), min(numbers), max(numbers))


@dataclass(frozen=True)
class Composition:
    """Batches in numbers; distances are those of the vectors passed in, embeddings or pixels.

    batches: how many.
    batch_size: the images of the largest.
    classes: how many a batch has.
    images_per_class: of a batch, on average.
    categories: how many a batch has; None: the data have none.
    repeated: places of a batch that repeat an image of it.
    positive_pairs: their share of all pairs of a batch.
    images_shown: share of the data, over all batches.
    classes_shown: share of the classes, over all batches.
    within: mean distance of positive pairs; None: no vectors were given, or no such pairs meet.
    between: mean distance of negative pairs.
    nearest_negative: distance from an image to the nearest of another class, on average.
    """

    batches: int
    batch_size: int
    classes: BatchSpread
    images_per_class: BatchSpread
    categories: BatchSpread | None
    repeated: BatchSpread
    positive_pairs: BatchSpread
    images_shown: float
    classes_shown: float
    within: BatchSpread | None = None
    between: BatchSpread | None = None
    nearest_negative: BatchSpread | None = None

    def as_json(self) -> dict[str, Any]:
        """All numbers by name."""
        return {
            key: value._asdict() if isinstance(value, BatchSpread) else value
            for key, value in ((key, getattr(self, key)) for key in asdict(self))
        }


def describe_batches(
    batches: list[list[int]],
    labels: Integer[Tensor, " n"],
    categories: Integer[Tensor, " n"] | None = None,
    vectors: Float[Tensor, "n d"] | None = None,
) -> Composition:
    """The batches of an epoch in numbers; `categories` of the images and `vectors` where there are any.

    >>> composition = describe_batches([[0, 1, 2], [0, 1, 1]], torch.tensor([7, 7, 9, 9]))
    >>> composition.classes, composition.images_shown
    (BatchSpread(mean=1.5, least=1, most=2), 0.75)
    """
    check(len(batches) > 0 and all(batches), "there are no batches to describe: give at least one, with images")
    rows = [torch.tensor(batch) for batch in batches]
    sizes = [torch.unique(labels[batch], return_counts=True)[1] for batch in rows]
    shown = torch.unique(torch.cat(rows))
    distances = {} if vectors is None else _distances(rows, labels, vectors)
    return Composition(
        batches=len(batches),
        batch_size=max(len(batch) for batch in batches),
        classes=BatchSpread.of(len(counts) for counts in sizes),
        images_per_class=BatchSpread.of(float(counts.double().mean()) for counts in sizes),
        categories=None
        if categories is None
        else BatchSpread.of(len(torch.unique(categories[batch])) for batch in rows),
        repeated=BatchSpread.of(len(batch) - len(torch.unique(batch)) for batch in rows),
        positive_pairs=BatchSpread.of(_positive_share(counts) for counts in sizes),
        images_shown=len(shown) / len(labels),
        classes_shown=len(torch.unique(labels[shown])) / len(torch.unique(labels)),
        **distances,
    )


def _positive_share(counts: Tensor) -> float:
    total = int(counts.sum())
    return float((counts * (counts - 1)).sum()) / max(1, total * (total - 1))


def _distances(rows: list[Tensor], labels: Tensor, vectors: Tensor) -> dict[str, BatchSpread | None]:
    means: dict[str, list[float]] = {"within": [], "between": [], "nearest_negative": []}
    for apart, pairs in _meetings(rows, labels, vectors):
        if pairs.positive.any():
            means["within"].append(float(apart[pairs.positive].mean()))
        if pairs.negative.any():
            means["between"].append(float(apart[pairs.negative].mean()))
            nearest = torch.where(pairs.negative, apart, torch.inf).amin(1)
            means["nearest_negative"].append(float(nearest[nearest.isfinite()].mean()))
    return {name: BatchSpread.of(values) if values else None for name, values in means.items()}


def _meetings(rows: Iterable[Tensor], labels: Tensor, vectors: Tensor) -> Iterator[tuple[Tensor, Pairs]]:
    """The distances and the pairs of every batch."""
    for batch in rows:
        yield torch.cdist(vectors[batch].double(), vectors[batch].double()), Pairs.within(labels[batch])


def batch_distances(
    batches: list[list[int]], labels: Integer[Tensor, " n"], vectors: Float[Tensor, "n d"]
) -> tuple[Float[Tensor, " p"], Float[Tensor, " q"]]:
    """All distances of positive and of negative pairs that meet in a batch, for a histogram."""
    near, far = [], []
    for apart, pairs in _meetings(map(torch.tensor, batches), labels, vectors):
        near.append(apart[pairs.positive])
        far.append(apart[pairs.negative])
    return torch.cat(near), torch.cat(far)
