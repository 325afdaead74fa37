"""Groups as strips of photos, and what they might be called.

Groups without a name come first, the largest of those that were found before the smaller, and a part that was divided
off after the rest of it. In a strip the most typical photos come first; those that fit least are at its end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Float64, Int64

from lookalike.discover.grouping import APART
from lookalike.discover.mending import MendedGroups

State = Literal["found", "aside", "named", "known", "apart"]
ORDER: tuple[State, ...] = ("found", "aside", "named", "known", "apart")
SUGGESTED = 3  # names for a group
ROUNDS = 30  # of dividing a group


@dataclass(frozen=True)
class Strips:
    """All groups of one moment; `vectors` are on the sphere, and only groups above `floor` suggest their name."""

    vectors: Float[np.ndarray, "n d"]
    mended: MendedGroups
    floor: float = -1.0

    @cached_property
    def _starts(self) -> tuple[Int64[np.ndarray, " n"], Int64[np.ndarray, " g"], Int64[np.ndarray, " g"]]:
        """The photos by groups, the numbers of the groups, and where each begins."""
        order = np.argsort(self.mended.groups, kind="stable")
        numbers, starts = np.unique(self.mended.groups[order], return_index=True)
        return order, numbers, starts

    @cached_property
    def means(self) -> Float64[np.ndarray, "g d"]:
        """The mean of each group, in the order of their numbers."""
        order, _, starts = self._starts
        sizes = np.diff(starts, append=len(order))
        return np.add.reduceat(self.vectors[order], starts, axis=0, dtype=np.float64) / sizes[:, None]

    @cached_property
    def numbers(self) -> list[int]:
        """All groups in the order in which they are shown; photos in no group are the last."""
        _, numbers, _ = self._starts
        origin = self.mended.origin
        return sorted(numbers.tolist(), key=lambda one: (ORDER.index(self.state(one)), origin.get(one, one), one))

    def state(self, number: int) -> State:
        if number == APART:
            return "apart"
        if number in self.mended.known:
            return "known"
        if number in self.mended.names:
            return "named"
        return "aside" if self.mended.aside[self.rows(number)].all() else "found"

    def _place(self, number: int) -> int:
        return int(np.searchsorted(self._starts[1], number))

    def rows(self, number: int) -> Int64[np.ndarray, " m"]:
        """The photos of a group."""
        order, numbers, starts = self._starts
        place = self._place(number)
        if place >= len(numbers) or numbers[place] != number:
            return np.empty(0, np.int64)
        end = starts[place + 1] if place + 1 < len(starts) else len(order)
        return np.asarray(order[starts[place] : end])

    def typical(self, number: int) -> list[int]:
        """The photos of a group, the most typical first; those in no group as they came, those taken out last."""
        rows = self.rows(number)
        if number == APART:
            return [int(row) for row in rows[np.argsort(self.mended.out[rows], kind="stable")]]
        near = self.vectors[rows] @ self.means[self._place(number)]
        return [int(row) for row in rows[np.lexsort((rows, -near))]]

    def names(self, number: int) -> list[str]:
        """Names of classes that a group without one might have, the most similar first."""
        named = [other for other in self.numbers if other in self.mended.names]
        if number == APART or number in self.mended.names or not named:
            return []
        means = self.means[[self._place(other) for other in named]]
        near = means @ self.means[self._place(number)]
        best = np.argsort(-near, kind="stable")[:SUGGESTED]
        return [self.mended.names[named[place]] for place in best if near[place] > self.floor]


def halves(vectors: Float[np.ndarray, "n d"]) -> Bool[np.ndarray, " n"]:
    """Two parts of a group by 2-means, starting from the photo that fits least and the one least like it.

    The smaller part is True.

    >>> halves(np.array([[1.0, 0.0], [0.9, 0.1], [0.9, 0.2], [0.0, 1.0], [0.1, 0.9]])).tolist()
    [False, False, False, True, True]
    """
    first = vectors[int((vectors @ vectors.mean(0)).argmin())]
    centres = np.stack([first, vectors[int((vectors @ first).argmin())]])
    part = np.zeros(len(vectors), bool)
    for _ in range(ROUNDS):
        before, part = part, vectors @ centres[0] > vectors @ centres[1]
        if (part == before).all() or part.all() or not part.any():
            break
        centres = np.stack([vectors[part].mean(0), vectors[~part].mean(0)])
    if part.all() or not part.any():  # all photos are the same
        part = np.arange(len(vectors)) == 0
    return part if part.sum() * 2 <= len(part) else ~part


def middle(vectors: Float[np.ndarray, "n d"], rows: Sequence[int] | np.ndarray) -> int:
    """The one of these photos that is nearest to their mean."""
    chosen = np.sort(np.asarray(rows))
    return int(chosen[int((vectors[chosen] @ vectors[chosen].mean(0)).argmax())])
