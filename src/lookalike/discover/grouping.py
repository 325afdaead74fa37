"""Groups of one kind at every level, from coarse to fine, and the level that the vectors themselves suggest.

The neighbours of every item are exact; groups merge along them by their mean similarity ([math M-groups]). Random pairs
say what no likeness is: a level below their mean plus two standard deviations is not suggested. Above it, the
suggested level is the one at which most items are more similar to the others of their group than to any other nearby.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64, Int64

from lookalike.errors import check
from lookalike.evaluation.neighbours import neighbours
from lookalike.geometry import Geometry
from lookalike.progress import Progress

NEIGHBOURS = 20
PAIRS = 20_000  # random ones
ABOVE = 2.0  # standard deviations of random pairs below which no level is suggested
LEVELS = 24  # that are compared
LEAST = 3  # items of a group; the others stay apart
APART = -1
BLOCK = 65_536  # pairs whose vectors are held at once


@dataclass(frozen=True)
class FoundGroups:
    """The groups at one level.

    groups: a number per item, the largest group first, −1 for what belongs nowhere.
    similarity: the mean to the others of its group.
    nearer: by how much that is more than to the next group; ∞ where none is near.
    level: the mean similarity down to which groups were merged.
    fineness: the same as a number from 0 to 1.
    """

    groups: Int64[np.ndarray, " n"]
    similarity: Float64[np.ndarray, " n"]
    nearer: Float64[np.ndarray, " n"]
    level: float
    fineness: float

    @property
    def count(self) -> int:
        return int(self.groups.max(initial=APART)) + 1

    @property
    def coverage(self) -> float:
        return float((self.groups != APART).mean())


@dataclass(frozen=True)
class Grouping:
    """Items with all their merges, from which groups of every level are read.

    vectors: one per item, on the sphere where `squares` are 0.
    nearest: the neighbours of each item.
    known: the class of an item by its number, −1 for those without; a class is one group at every level.
    kept: of each merge the root of the group that stays.
    joined: the root of the one that joins it.
    heights: the mean similarity at which it took place, falling.
    random: the mean similarity of random pairs.
    spread: its standard deviation.
    finest: the mean similarity of nearest neighbours.
    """

    vectors: Float32[np.ndarray, "n d"]
    squares: Float64[np.ndarray, " n"]
    nearest: Int64[np.ndarray, "n k"]
    known: Int64[np.ndarray, " n"]
    kept: Int64[np.ndarray, " m"]
    joined: Int64[np.ndarray, " m"]
    heights: Float64[np.ndarray, " m"]
    random: float
    spread: float
    finest: float

    def __len__(self) -> int:
        return len(self.vectors)

    def level_of(self, fineness: float) -> float:
        """The level of a `fineness` from 0, as alike as random pairs, to 1, as alike as nearest neighbours."""
        check(0 <= fineness <= 1, f"a level is a number from 0 (coarse) to 1 (fine), not {fineness:g}")
        return self.random + fineness * (self.finest - self.random)

    def fineness_of(self, level: float) -> float:
        """The fineness of a `level`: 0 below that of random pairs, 1 above that of nearest neighbours."""
        spread = self.finest - self.random
        return min(max((level - self.random) / spread, 0.0), 1.0) if spread > 0 else 0.0

    def level_of_examples(self, items: Sequence[int]) -> float:
        """The highest level at which these `items`, by their rows, are in one group."""
        check(len(set(items)) > 1, "give at least two different examples of one kind")
        rows = list(items)
        few, many = 0, len(self.heights)  # merges that do not suffice, and that do
        never = "no level puts these examples into one group: choose ones that look more alike, or give --level"
        check(len(set(self._numbers(many)[rows].tolist())) == 1, never)
        while few < many:
            middle = (few + many) // 2
            if len(set(self._numbers(middle)[rows].tolist())) == 1:
                many = middle
            else:
                few = middle + 1
        return float(self.heights[few - 1]) if few else self.finest

    def suggested(self, progress: Progress | None = None) -> float:
        """The level at which most items are nearest to their own group, of equal ones the coarsest.

        `progress(done, total)` is called.
        """
        lowest = min(self.random + ABOVE * self.spread, self.level_of(0.5))  # of few kinds many random pairs are alike
        free, best, result = self.known < 0, -1.0, lowest
        for done, level in enumerate(np.linspace(lowest, self.finest, LEVELS).tolist(), start=1):
            groups = self._numbers(self._merges(level))
            own, other = self._similarities(groups)
            share = float((own > other)[free].mean()) if free.any() else 0.0
            if share > best:
                best, result = share, level
            if progress is not None:
                progress(done, LEVELS)
        return result

    def at(self, level: float, least: int = LEAST) -> FoundGroups:
        """The groups at a `level`; groups of fewer than `least` items are no groups, but known classes are."""
        groups = self._numbers(self._merges(level))
        own, other = self._similarities(groups)
        sizes = np.bincount(groups)
        whole = (sizes >= least) | (np.bincount(groups, self.known >= 0) > 0)
        order = np.lexsort((np.arange(len(sizes)), -sizes))  # the largest first, of equal ones that of the first item
        numbers = np.full(len(sizes), APART)
        numbers[order[whole[order]]] = np.arange(int(whole.sum()))
        found = numbers[groups]
        inside = np.where(np.isfinite(own), own, 0.0)
        nearer = np.where(np.isfinite(own), own - other, 0.0)
        return FoundGroups(found, inside, nearer, level, self.fineness_of(level))

    def count(self, level: float, least: int = LEAST) -> int:
        """How many groups there are at a `level`, of at least `least` items; known classes always count."""
        groups = self._numbers(self._merges(level))
        return int(((np.bincount(groups) >= least) | (np.bincount(groups, self.known >= 0) > 0)).sum())

    def _roots(self) -> Int64[np.ndarray, " n"]:
        """Every item is its own group, except that a known class is one."""
        parent = np.arange(len(self))
        for rows in _classes(self.known):
            parent[rows] = rows[0]
        return parent

    def _merges(self, level: float) -> int:
        """How many merges there are down to a level."""
        return int(np.searchsorted(-self.heights, -level, side="right"))

    def _numbers(self, merges: int) -> Int64[np.ndarray, " n"]:
        """The group of every item after so many merges, numbered by first items."""
        parent = self._roots()
        parent[self.joined[:merges]] = self.kept[:merges]
        while (parent[parent] != parent).any():
            parent = parent[parent]
        return np.unique(parent, return_inverse=True)[1]

    def _similarities(self, groups: Int64[np.ndarray, " n"]) -> tuple[np.ndarray, np.ndarray]:
        from lookalike.discover import merging  # numba is not light

        own, other = merging.similarities(self.vectors, self.squares, groups, self.nearest, int(groups.max()) + 1)
        return own, other


def hierarchy(
    vectors: Float32[np.ndarray, "n d"],
    known: Int64[np.ndarray, " n"] | None = None,
    *,
    geometry: Geometry = "sphere",
    progress: Progress | None = None,
) -> Grouping:
    """All merges of `vectors`, as they are compared in `geometry`; nothing in it is random.

    `known`: the class of each item by its number, −1 for those without one: two classes are never merged, and others
    join them. `progress(done, total)` is called while neighbours are searched.

    >>> angles = np.array([0.0, 0.1, 0.2, 1.5, 1.6, 1.7, 3.0])
    >>> found = hierarchy(np.stack([np.cos(angles), np.sin(angles)], 1).astype(np.float32)).at(level=0.9)
    >>> found.groups.tolist()
    [0, 0, 0, 1, 1, 1, -1]
    """
    from lookalike.discover import merging  # numba is not light

    check(len(vectors) >= LEAST, f"groups need at least {LEAST} photos, and there are {len(vectors)}")
    if geometry == "sphere":
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = np.asarray(vectors / np.maximum(lengths, np.finfo(np.float32).tiny), np.float32)
    squares = np.zeros(len(vectors)) if geometry == "sphere" else np.square(vectors.astype(np.float64)).sum(1)
    classes = np.full(len(vectors), -1) if known is None else known
    nearest = neighbours(vectors, None, NEIGHBOURS, normalise="none", progress=progress).indices.numpy()
    edges = _edges(nearest)
    scores = _scores(vectors, squares, edges)
    generator = np.random.default_rng(0)
    pairs = generator.integers(len(vectors), size=(PAIRS, 2))
    chance = _scores(vectors, squares, pairs[pairs[:, 0] != pairs[:, 1]])
    finest = float(_scores(vectors, squares, np.stack([np.arange(len(vectors)), nearest[:, 0]], 1)).mean())
    random, spread = float(chance.mean()), float(chance.std())
    merges = merging.merge(*_groups(vectors, squares, classes), edges, scores, random)
    heights = np.minimum.accumulate(merges[2])  # a mean that the graph did not see may be above the one before
    return Grouping(vectors, squares, nearest, classes, merges[0], merges[1], heights, random, spread, finest)


def _edges(nearest: Int64[np.ndarray, "n k"]) -> Int64[np.ndarray, "m 2"]:
    """Every pair of neighbours once, the lower row first, in a fixed order."""
    rows = np.repeat(np.arange(len(nearest)), nearest.shape[1])
    pairs = np.sort(np.stack([rows, nearest.ravel()], 1), axis=1)
    codes = np.unique(pairs[:, 0] * len(nearest) + pairs[:, 1])
    return np.stack(np.divmod(codes, len(nearest)), 1)


def _scores(
    vectors: Float32[np.ndarray, "n d"], squares: Float64[np.ndarray, " n"], pairs: Int64[np.ndarray, "m 2"]
) -> Float64[np.ndarray, " m"]:
    """The similarity of each pair, a block of pairs at a time."""
    result = np.empty(len(pairs))
    for start in range(0, len(pairs), BLOCK):
        left, right = pairs[start : start + BLOCK].T
        products = np.einsum("nd,nd->n", vectors[left], vectors[right], dtype=np.float64)
        result[start : start + BLOCK] = products - (squares[left] + squares[right]) / 2
    return result


def _groups(
    vectors: Float32[np.ndarray, "n d"], squares: Float64[np.ndarray, " n"], known: Int64[np.ndarray, " n"]
) -> tuple[np.ndarray, ...]:
    """Sums, squares, sizes, parents, and whether a class is known, of the groups that merging begins with."""
    sums, total, sizes = vectors.copy(), squares.copy(), np.ones(len(vectors))
    parent = np.arange(len(vectors))
    for rows in _classes(known):
        sums[rows[0]], total[rows[0]] = vectors[rows].sum(0), squares[rows].sum()
        sizes[rows[0]], parent[rows] = len(rows), rows[0]
    return sums, total, sizes, parent, known >= 0


def _classes(known: Int64[np.ndarray, " n"]) -> list[Int64[np.ndarray, " m"]]:
    """The rows of each known class."""
    order = np.argsort(known, kind="stable")
    order = order[known[order] >= 0]
    starts = np.flatnonzero(np.diff(known[order])) + 1
    return [rows for rows in np.split(order, starts) if len(rows)]
