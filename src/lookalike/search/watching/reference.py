"""What ordinary queries look like: measured with the images that an index was calibrated with, kept in numbers.

Two scores of a query are watched, low where it is unusual: the similarity of its best hit, and how near it lies to the
cloud of the items (minus half the mean square of its coordinates along the main axes of the items, in their standard
deviations, and of what is left). Queries come in runs of the same kind, so the means of blocks are compared, not single
ones; the reference has one block of each class, which is as alike as a run can be.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64

from lookalike.search.items import Vectors

BLOCK = 10  # queries whose mean score is one observation
AXES = 8  # of the cloud of items
BINS = 10  # of the sketch: each holds as many of the calibration's queries
SCORES = ("similarity", "cloud")
LEAST = 20  # classes: fewer say nothing about rare blocks
WATCHED = 2_000  # calibrating images that stand for ordinary queries
FLAT = 1e-12  # the least that the axes leave
LARGEST = 1e100  # of any number: its square is one, too


@dataclass(frozen=True)
class Reference:
    """Scores of ordinary queries, and the cloud that one of the scores is measured with."""

    blocks: Mapping[str, Sequence[float]]  # of each score: the means of one block of every class, rising
    edges: Sequence[float]  # between the bins of similarities
    centre: Sequence[float]
    axes: Sequence[Sequence[float]]  # divided by the standard deviation along them
    rest: float  # the mean square of what the axes leave

    def cloud(self, vectors: Vectors) -> Float64[np.ndarray, " n"]:
        """How usual vectors are among the items; 0 is the centre."""
        centre, axes = self._arrays
        off = vectors.astype(np.float64) - centre
        along, squares = off @ axes.T, (axes**2).sum(1)
        left = (off**2).sum(1) - (along**2 / squares).sum(1)
        return np.asarray(-0.5 * ((along**2).mean(1) + left / self.rest))

    @cached_property
    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        return np.asarray(self.centre, np.float64), np.asarray(self.axes, np.float64)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> "Reference":
        """A reference that was kept; a ValueError where no calibration writes such numbers."""
        result = Reference(**content)
        if not (_is_cloud(*result._arrays, result.rest) and _are_scores(result.blocks, result.edges)):
            raise ValueError("no reference of ordinary queries")
        return result


def _is_cloud(centre: np.ndarray, axes: np.ndarray, rest: float) -> bool:
    fits = axes.ndim == 2 and axes.shape[1:] == centre.shape and 0 < len(axes) <= AXES
    numbers = _are_numbers(centre) and _are_numbers(axes) and FLAT <= rest < LARGEST
    return fits and numbers and bool((axes**2).sum(1).all())


def _are_scores(blocks: Mapping[str, Sequence[float]], edges: Sequence[float]) -> bool:
    rising = [np.asarray(numbers, np.float64) for numbers in (edges, *blocks.values())]
    fits = blocks.keys() == set(SCORES) and all(each.ndim == 1 and 0 < len(each) <= WATCHED for each in rising)
    return fits and len(edges) == BINS - 1 and all(_are_numbers(each) and (np.diff(each) >= 0).all() for each in rising)


def _are_numbers(array: np.ndarray) -> bool:
    return bool((np.abs(array) < LARGEST).all())  # nor is one of them NaN


def cloud_of(items: Vectors) -> tuple[list[float], list[list[float]], float]:
    """The centre of items, their main axes in standard deviations, and the mean square of the rest."""
    exact = items.astype(np.float64)
    centre = exact.mean(0)
    _, sizes, axes = np.linalg.svd(exact - centre, full_matrices=False)
    deviations = sizes / np.sqrt(len(exact))
    kept = min(AXES, int((deviations > 1e-9).sum()))
    scaled = axes[:kept] / deviations[:kept, None]
    rest = float((deviations[kept:] ** 2).sum())
    return centre.tolist(), scaled.tolist(), max(rest, FLAT)


def reference(
    items: Float32[np.ndarray, "items d"],
    queries: Vectors,
    similarities: Sequence[float],
    labels: Sequence[str],
    seed: int = 0,
) -> Reference | None:
    """From some items, and labelled queries with the similarities of their best hits; None: too few of them to tell."""
    rows: dict[str, list[int]] = defaultdict(list)
    for row, label in enumerate(labels):
        rows[label].append(row)
    if len(rows) < LEAST or len(items) < 2:
        return None
    plain = Reference({}, [], *cloud_of(items))
    if not plain.axes:  # all in one place
        return None
    scores = {"similarity": np.asarray(similarities, np.float64), "cloud": plain.cloud(queries)}
    draw = np.random.default_rng(seed)
    chosen = [draw.choice(own, BLOCK, replace=len(own) < BLOCK) for own in rows.values()]
    blocks = {name: sorted(float(scores[name][some].mean()) for some in chosen) for name in SCORES}
    edges = np.quantile(scores["similarity"], np.arange(1, BINS) / BINS).tolist()
    return Reference(blocks, edges, plain.centre, plain.axes, plain.rest)
