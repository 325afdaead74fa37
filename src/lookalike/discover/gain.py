"""The next best question: for which two groups is it worth most to know whether they are one?

Only groups with neighbours in each other are candidates. The chance that two of them are one is a logistic model of
their mean similarity and of how much less that is than the similarity within them; it begins as a guess around the
level of the groups and learns from every answer. A question is worth the chance of a merge times the
photos that it settles (those of the smaller group), less for groups that were asked about in vain before, so that
questions do not circle around one place.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64, Int64

from lookalike.discover.grouping import APART
from lookalike.discover.mending import MendedGroups

GUESS = np.array([0.0, 3.0, 1.0])  # the model before any answer: a constant, and the weights of both similarities
TRUST = 1.0  # in that guess, as a precision
STEPS = 20  # of Newton's method
BLOCK = 4_096  # photos whose vectors, or pairs of groups whose sums, are held at once


@dataclass(frozen=True)
class JudgedGroups:
    """What was seen of two groups when a person said whether they are one."""

    seen: tuple[float, float]
    same: bool


@dataclass(frozen=True)
class OpenQuestions:
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
        """The photos that are expected to join their group by an answer."""
        return np.asarray(self.chance * self.settled / (1 + self.vain))


@dataclass(frozen=True)
class Likeness:
    """What photos look like: unit `vectors`, their `nearest` ones, and the levels at which groups were made."""

    vectors: np.ndarray
    nearest: Int64[np.ndarray, "n k"]
    level: float
    random: float

    def open_questions(self, mended: MendedGroups, judged: Sequence[JudgedGroups]) -> OpenQuestions:
        """All pairs of neighbouring groups that nobody has judged; a photo in no group counts as a group."""
        count = int(mended.groups.max(initial=APART)) + 1
        alone = mended.groups == APART
        groups = np.where(alone, count + np.arange(len(alone)), mended.groups)
        names, own = np.unique(groups, return_inverse=True)
        spoken = np.array([own[[left, right]] for left, right, word in mended.judged if word != "same"], np.int64)
        spoken = spoken.reshape(-1, 2)
        near = _codes(np.repeat(own, self.nearest.shape[1]), own[self.nearest.ravel()], len(names))
        codes = np.setdiff1d(near, _codes(spoken[:, 0], spoken[:, 1], len(names)))
        one, other = np.divmod(codes, len(names))
        single = names >= count
        named = ~single & np.isin(names, list(mended.names))
        thrown = np.isin(names, count + np.flatnonzero(mended.out))
        settled = (single[one] & single[other]) | (named[one] & named[other]) | thrown[one] | thrown[other]
        one, other = one[~settled], other[~settled]
        sums, sizes = self._sums(own), np.bincount(own)
        between = _products(sums, sums, one, other) / (sizes[one] * sizes[other])
        within = (np.einsum("gd,gd->g", sums, sums) - sizes) / np.maximum(sizes * (sizes - 1), 1)
        within[sizes == 1] = self.level
        unit = max(self.level - self.random, 1e-9)
        seen = np.stack([between - self.level, between - (within[one] + within[other]) / 2], 1) / unit
        middle, vain = self._middles(own, sums), np.bincount(spoken.ravel(), minlength=len(names))
        chance = _chance(seen, judged)
        pairs = np.stack([middle[one], middle[other]], 1)
        return OpenQuestions(pairs, seen, chance, np.minimum(sizes[one], sizes[other]), vain[one] + vain[other])

    def _sums(self, own: Int64[np.ndarray, " n"]) -> Float64[np.ndarray, "g d"]:
        """The sum of the vectors of each group."""
        sums, order = np.zeros((int(own.max()) + 1, self.vectors.shape[1])), np.argsort(own, kind="stable")
        for start in range(0, len(order), BLOCK):
            rows = order[start : start + BLOCK]
            starts = np.flatnonzero(np.diff(own[rows], prepend=-1))
            sums[own[rows[starts]]] += np.add.reduceat(self.vectors[rows], starts, axis=0, dtype=np.float64)
        return sums

    def _middles(self, own: Int64[np.ndarray, " n"], sums: Float64[np.ndarray, "g d"]) -> Int64[np.ndarray, " g"]:
        """The photo of each group that is nearest to its mean, of equal ones the first."""
        near = _products(self.vectors, sums, np.arange(len(own)), own)
        order = np.lexsort((np.arange(len(own)), -near, own))
        return np.asarray(order[np.flatnonzero(np.diff(own[order], prepend=-1))])


def _codes(left: Int64[np.ndarray, " m"], right: Int64[np.ndarray, " m"], count: int) -> Int64[np.ndarray, " pairs"]:
    """A number for every two different groups of `count`."""
    return np.asarray((np.minimum(left, right) * count + np.maximum(left, right))[left != right])


def _products(
    left: Float[np.ndarray, "n d"],
    right: Float64[np.ndarray, "g d"],
    one: Int64[np.ndarray, " m"],
    other: Int64[np.ndarray, " m"],
) -> Float64[np.ndarray, " m"]:
    """The scalar product of each pair of rows, a block of pairs at a time."""
    result = np.empty(len(one))
    for start in range(0, len(one), BLOCK):
        rows = slice(start, start + BLOCK)
        result[rows] = np.einsum("md,md->m", left[one[rows]], right[other[rows]])
    return result


def _chance(seen: Float64[np.ndarray, "m 2"], judged: Sequence[JudgedGroups]) -> Float64[np.ndarray, " m"]:
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
