"""Exact nearest items by a scan of small integers: centre, round, scan, score again in float64, certify.

score(q, x) = q·x = (q − m)·(x − m) + offset(x) + q·m − m·m with offset(x) = m·x; off the sphere it is −‖q − x‖²/2, half
the squares less. The centred part is small and survives rounding to int8; the offset is one float per item. The lengths
of the rounding errors bound what they can hide, so an answer is either proven or completed: every item whose rounded
score could still reach the last place is scored in float64. Equal scores are ordered by the caller.

Vectors are measured in a power of two near the largest of their numbers, so that no float32 under- or overflows,
however short or long they are. What is the same for all items of a query, q·m − m·m, stays in float64.

The compiled loops release the GIL; rows are divided among Python threads.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
from jaxtyping import Float32, Float64, Int8, Int16, Int64

from lookalike.ordered_map import in_order

LEVELS = 127
SAMPLE = 4096  # scores that a floor is guessed from
THREADS = os.cpu_count() or 1
SHORTLIST = 128  # candidates that are scored in float64 before anything is proven
ROWS_AT_ONCE = 4096  # in float64
LOWEST = float(np.finfo(np.float32).min)
FLOAT_ROUNDING = 2.0**-22  # of a float32 score relative to what is summed, with room to spare
DOUBLE_ROUNDING = 2.0**-50  # of a float64 sum, for each of its numbers
UNDERFLOW = 2.0**-125  # what a float32 can lose below its normal numbers
OVERFLOW = 2.0**120  # a score that is not left to float32

Scores = Float32[np.ndarray, "queries n"]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Rounded:
    """Vectors as small integers around their mean, with what rounding can hide; everything is measured in `unit`."""

    items: Int8[np.ndarray, "n d"]
    offsets: Float32[np.ndarray, " n"]
    mean: Float64[np.ndarray, " d"]
    unit: float  # a power of two
    step: float  # one level
    error: float  # the longest rounding error of an item
    reach: float  # the longest centred item
    size: float  # the largest offset
    spherical: bool

    def __len__(self) -> int:
        return len(self.items)


def round_vectors(vectors: Float32[np.ndarray, "n d"], spherical: bool) -> Rounded:
    """The integers of some vectors (at least one), in blocks so that no second copy of them is held."""
    mean = vectors.mean(0, dtype=np.float64)
    items = np.empty(vectors.shape, np.int8)
    offsets = np.empty(len(vectors), np.float32)
    blocks = [slice(start, start + ROWS_AT_ONCE) for start in range(0, len(vectors), ROWS_AT_ONCE)]
    largest = max(float(np.abs(vectors[rows] - mean).max()) for rows in blocks)
    unit = float(np.ldexp(1.0, np.frexp(np.abs(mean).max() + largest)[1]))
    mean /= unit
    step = largest / unit / LEVELS if largest > 0 else 1.0
    error = reach = size = 0.0
    for rows in blocks:
        exact = vectors[rows].astype(np.float64) / unit
        centred = exact - mean
        items[rows] = np.rint(centred / step)
        half = 0.0 if spherical else np.square(exact).sum(1) / 2
        offset = exact @ mean - half
        offsets[rows] = offset
        error = max(error, float(np.linalg.norm(centred - step * items[rows], axis=1).max()))
        reach = max(reach, float(np.linalg.norm(centred, axis=1).max()))
        size = max(size, float(np.abs(offset).max()))
    return Rounded(items, offsets, mean, unit, step, error, reach, size, spherical)


def rounded_scores(
    rounded: Rounded, queries: Float32[np.ndarray, "queries d"], scores: Scores
) -> tuple[Float64[np.ndarray, " queries"], Float64[np.ndarray, " queries"]]:
    """Fill in the rounded scores of every item; the shift and the bound of each query.

    exact = (score + shift ± bound) · unit². An infinite bound promises nothing: the query is too long for float32.
    """
    exact = queries.astype(np.float64) / rounded.unit
    centred = exact - rounded.mean
    largest = np.abs(centred).max(1)
    steps = np.where(largest > 0, largest / LEVELS, 1.0)
    whole = np.rint(centred / steps[:, None]).astype(np.int16)
    shifts = exact @ rounded.mean - rounded.mean @ rounded.mean
    if not rounded.spherical:
        shifts -= np.square(exact).sum(1) / 2
    lengths, errors = np.linalg.norm(centred, axis=1), np.linalg.norm(centred - steps[:, None] * whole, axis=1)
    summed = lengths * rounded.reach + rounded.size
    fits = summed < OVERFLOW
    _fill(rounded, whole, np.where(fits, steps * rounded.step, 0.0), scores)
    hidden = lengths * rounded.error + errors * (rounded.reach + rounded.error)
    longest = lengths + 2 * np.linalg.norm(rounded.mean) + rounded.reach  # ‖q‖ + ‖x‖ at most
    rounding = FLOAT_ROUNDING * summed + DOUBLE_ROUNDING * exact.shape[1] * np.square(longest) + UNDERFLOW
    return shifts, np.where(fits, hidden + rounding, np.inf)


def _fill(
    rounded: Rounded, whole: Int16[np.ndarray, "queries d"], scales: Float64[np.ndarray, " queries"], scores: Scores
) -> None:
    """The scores by the compiled loop, or by products of whole blocks where the processor has them."""
    from lookalike.search.scan import dot_products, kernel  # numba is not light

    cuts = np.linspace(0, len(rounded), _threads(len(rounded)) + 1).astype(int).tolist()
    small = whole.astype(np.int8)
    in_blocks = dot_products.usable(len(whole), min(stop - start for start, stop in pairwise(cuts)), whole.shape[1])

    def part(number: int) -> None:
        start, stop = cuts[number], cuts[number + 1]
        if not in_blocks:
            kernel.scan(rounded.items[start:stop], rounded.offsets[start:stop], whole, scales, scores[:, start:stop])
            return
        for first in range(start, stop, dot_products.ROWS):
            first = min(first, stop - dot_products.ROWS)  # the last block overlaps the one before: one shape for all
            rows = slice(first, first + dot_products.ROWS)
            products = dot_products.products(small, rounded.items[rows])
            kernel.scaled(products, rounded.offsets[rows], scales, scores[:, rows])

    for_each(part, len(cuts) - 1, len(rounded))


def shortlist(scores: Float32[np.ndarray, " n"], count: int) -> Int64[np.ndarray, " m"]:
    """The places of the `count` highest scores, or of a few more: a floor from a sample, then one pass."""
    from lookalike.search.scan import kernel

    if len(scores) <= 4 * count:
        return np.argsort(-scores, kind="stable")[:count]
    stride = max(1, len(scores) // SAMPLE)
    sample = np.sort(scores[::stride])[::-1]
    rank = min(len(sample) - 1, 2 * count // stride + 4)
    places = np.empty(16 * count, np.int64)
    few, many = -1, len(sample)  # ranks that leave too few scores, and too many
    while few < rank < many:
        number = kernel.at_least(scores, sample[rank], places)
        if count <= number <= len(places):
            near = places[:number]
            return near[np.argpartition(-scores[near], count - 1)[:count]] if number > count else near
        if number < count:
            few, rank = rank, min(2 * rank + 1, (rank + many) // 2)
        else:
            many, rank = rank, (few + rank) // 2
    return np.argpartition(-scores, count - 1)[:count]  # many equal scores


def places_above(scores: Float32[np.ndarray, " n"], floor: float) -> Int64[np.ndarray, " m"]:
    """The places of all scores that reach the floor."""
    from lookalike.search.scan import kernel

    # the floor itself may be rounded up; what is hidden is −∞
    below = np.nextafter(np.float32(max(floor, 0.99 * LOWEST)), np.float32(-np.inf))
    places = np.empty(SHORTLIST * 16, np.int64)
    number = kernel.at_least(scores, below, places)
    return places[:number] if number <= len(places) else np.flatnonzero(scores >= below)


def exact_scores(
    vectors: Float32[np.ndarray, "m d"], query: Float32[np.ndarray, " d"], spherical: bool
) -> Float64[np.ndarray, " m"]:
    """q·x, or −‖q − x‖²/2 off the sphere, in float64; equal vectors get equal scores, bit by bit."""
    exact = query.astype(np.float64)
    scores = np.empty(len(vectors))
    for start in range(0, len(vectors), ROWS_AT_ONCE):
        rows = vectors[start : start + ROWS_AT_ONCE].astype(np.float64)
        if spherical:
            scores[start : start + ROWS_AT_ONCE] = (rows * exact).sum(1)
        else:
            scores[start : start + ROWS_AT_ONCE] = -np.square(rows - exact).sum(1) / 2
    return scores


def for_each(work: Callable[[int], Result], count: int, rows: int) -> list[Result]:
    """`work(0)`, `work(1)`, …, on several threads where there are many rows to look at."""
    threads = min(count, _threads(rows))
    return [work(number) for number in range(count)] if threads == 1 else list(in_order(work, count, threads))


def _threads(rows: int) -> int:
    """One thread for what is done sooner than a thread is woken."""
    return min(THREADS, max(1, rows // 100_000))
