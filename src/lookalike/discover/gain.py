"""The next best question: of which two groups is it worth most to know whether they are one?

Only groups with neighbours in each other are candidates. The chance that two of them are one is a logistic model of
their mean similarity and of how much less that is than the similarity within them; it begins as a guess around the
level of the groups and learns from every answer. A question is worth the chance of a merge times the
photos that it settles (those of the smaller group), less for groups that were asked about in vain before, so that
questions do not stay at one place.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from lookalike.discover.grouping import APART
from lookalike.discover.mending import MendedGroups

GUESS = np.array([0.0, 3.0, 1.0])  # the model before any answer: a constant, and the weights of both similarities
TRUST = 1.0  # in that guess, as a precision
STEPS = 20  # of Newton's method


@dataclass(frozen=True)
class Judged:
    """What was seen of two groups when a person said whether they are one."""

    seen: tuple[float, float]
    same: bool


@dataclass(frozen=True)
class Candidates:
    """Pairs of groups that a person may be asked about.

    pairs: two photos for each, one from the middle of each group.
    seen: their mean similarity, and how much less it is than that within the groups, in units of the level.
    chance: that they are one.
    settled: the photos of the smaller group.
    vain: how often one of the two was compared before and was not the same.
    """

    pairs: Int64[np.ndarray, "m 2"]
    seen: Float64[np.ndarray, "m 2"]
    chance: Float64[np.ndarray, " m"]
    settled: Int64[np.ndarray, " m"]
    vain: Int64[np.ndarray, " m"]

    @property
    def gain(self) -> Float64[np.ndarray, " m"]:
        """Photos that an answer is expected to bring into their group."""
        return np.asarray(self.chance * self.settled / (1 + self.vain))


@dataclass(frozen=True)
class Likeness:
    """What photos look like: unit `vectors`, their `nearest` ones, and the levels at which groups were made."""

    vectors: np.ndarray
    nearest: Int64[np.ndarray, "n k"]
    level: float
    random: float

    def candidates(self, mended: MendedGroups, judged: Sequence[Judged]) -> Candidates:
        """All pairs of neighbouring groups that nobody has spoken about; a photo in no group counts as one."""
        count = int(mended.groups.max(initial=APART)) + 1
        alone = mended.groups == APART
        groups = np.where(alone, count + np.arange(len(alone)), mended.groups)
        names, own = np.unique(groups, return_inverse=True)
        codes = np.unique(_pairs(own, self.nearest, len(names)))
        one, other = np.divmod(codes, len(names))
        free = ~((names[one] >= count) & (names[other] >= count)) & ~_spoken(names, one, other, mended, count)
        one, other = one[free], other[free]
        sums = np.zeros((len(names), self.vectors.shape[1]))
        np.add.at(sums, own, self.vectors)
        sizes = np.bincount(own)
        between = np.einsum("md,md->m", sums[one], sums[other]) / (sizes[one] * sizes[other])
        within = (np.einsum("gd,gd->g", sums, sums) - sizes) / np.maximum(sizes * (sizes - 1), 1)
        within[sizes == 1] = self.level
        unit = max(self.level - self.random, 1e-9)
        seen = np.stack([between - self.level, between - (within[one] + within[other]) / 2], 1) / unit
        middle, vain = self._middles(own, sums), _vain(names, mended, count)
        chance = _chance(seen, judged)
        pairs = np.stack([middle[one], middle[other]], 1)
        return Candidates(pairs, seen, chance, np.minimum(sizes[one], sizes[other]), vain[one] + vain[other])

    def _middles(self, own: Int64[np.ndarray, " n"], sums: Float64[np.ndarray, "g d"]) -> Int64[np.ndarray, " g"]:
        """The photo of each group that is nearest to its mean, of equal ones the first."""
        near = np.einsum("nd,nd->n", self.vectors, sums[own])
        order = np.lexsort((np.arange(len(own)), -near, own))
        return np.asarray(order[np.flatnonzero(np.diff(own[order], prepend=-1))])


def _pairs(own: Int64[np.ndarray, " n"], nearest: Int64[np.ndarray, "n k"], count: int) -> Int64[np.ndarray, " m"]:
    """A number for every two groups with neighbours in each other."""
    left, right = np.repeat(own, nearest.shape[1]), own[nearest.ravel()]
    low, high = np.minimum(left, right), np.maximum(left, right)
    return np.asarray((low * count + high)[low != high])


def _spoken(names: np.ndarray, one: np.ndarray, other: np.ndarray, mended: MendedGroups, count: int) -> np.ndarray:
    """Whether somebody has said that two groups are not one, or was not sure of it."""
    known = set(mended.apart)
    for left, right, word in mended.judged:
        if word != "same":
            ends = sorted(_place(mended, row, count) for row in (left, right))
            known.add((ends[0], ends[1]))
    pairs = zip(names[one].tolist(), names[other].tolist(), strict=True)
    return np.array([(min(pair), max(pair)) in known for pair in pairs], bool)


def _place(mended: MendedGroups, row: int, count: int) -> int:
    group = int(mended.groups[row])
    return group if group != APART else count + row


def _vain(names: np.ndarray, mended: MendedGroups, count: int) -> Int64[np.ndarray, " g"]:
    result = np.zeros(len(names), np.int64)
    rows = [_place(mended, row, count) for *pair, word in mended.judged if word != "same" for row in pair]
    np.add.at(result, np.searchsorted(names, rows), 1)
    return result


def _chance(seen: Float64[np.ndarray, "m 2"], judged: Sequence[Judged]) -> Float64[np.ndarray, " m"]:
    """The most likely logistic model after all answers, with a normal prior around the guess."""
    weights = GUESS.copy()
    if judged:
        rows = np.array([(1.0, *one.seen) for one in judged])
        words = np.array([one.same for one in judged], float)
        for _ in range(STEPS):
            expected = _logistic(rows @ weights)
            slope = rows.T @ (words - expected) - TRUST * (weights - GUESS)
            curve = (rows * (expected * (1 - expected))[:, None]).T @ rows + TRUST * np.eye(3)
            weights = weights + np.linalg.solve(curve, slope)
    return _logistic(weights[0] + seen @ weights[1:])


def _logistic(values: Float64[np.ndarray, " m"]) -> Float64[np.ndarray, " m"]:
    return np.asarray(1 / (1 + np.exp(-np.clip(values, -30, 30))))
