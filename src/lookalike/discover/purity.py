"""How pure are groups? A bound from a few pairs that somebody has looked at.

A photo is drawn from all that are in a group, and another one from its group. Where a group holds the share p_c of
class c, the two are of one class with a chance of at most Σ p_c², which is at most the largest share. So the chance
that a pair is of one kind is at most the purity, and a lower bound on it is one on the purity.

People who see the bound after each answer stop when it is high enough, so it must hold after all of them at once, and
that of Clopper and Pearson for a number fixed beforehand does not. It is a confidence sequence: the likelihood of the
answers at the rates above p₀, all alike, over that at p₀ is a supermartingale where p₀ is at least the true rate, and
reaches 1 / α at any time with a chance of at most α (Ville 1939; Robbins, Annals of Mathematical Statistics 1970). The
bound is the smallest p₀ at which it does not ([math M-groups]).
"""

from dataclasses import dataclass
from math import exp, lgamma, log, log1p

import numpy as np
from jaxtyping import Int64

from lookalike.discover.grouping import APART

CONFIDENCE = 0.9
STEPS = 50  # halvings of the interval


@dataclass(frozen=True)
class Checked:
    """How many `pairs` of one group somebody has looked at, and how many of them were of one kind, the `same`."""

    pairs: int
    same: int

    @property
    def purity(self) -> float:
        """At least this share of the grouped photos is of the kind that prevails in its group, with `CONFIDENCE`."""
        return lower_bound(self.same, self.pairs)

    def __str__(self) -> str:
        if not self.pairs:
            return "No pair has been checked yet, so nothing is promised about the groups."
        return (
            f"{self.same:,} of {self.pairs:,} checked pairs are of one kind: at least {self.purity:.0%} of the grouped "
            f"photos are in a group of their kind ({CONFIDENCE:.0%} confidence)."
        )


def lower_bound(right: int, count: int) -> float:
    """The smallest rate that is not refuted by `right` of `count`, whenever one stops counting.

    >>> round(lower_bound(30, 30), 4), lower_bound(0, 30)
    (0.8876, 0.0)
    """
    if not right:
        return 0.0
    low, high = 0.0, right / count
    for _ in range(STEPS):
        rate = (low + high) / 2
        low, high = (rate, high) if _evidence(right, count, rate) >= -log(1 - CONFIDENCE) else (low, rate)
    return low


def _evidence(right: int, count: int, rate: float) -> float:
    """The logarithm of the likelihood at all rates above this one over that at it; it falls as the rate grows."""
    more = sum(exp(_log_chance(hits, count + 1, rate)) for hits in range(right + 1, count + 2))
    return log1p(-more) - log(count + 1) - log1p(-rate) - _log_chance(right, count, rate)


def _log_chance(hits: int, count: int, rate: float) -> float:
    """The logarithm of the chance of so many hits, by the binomial distribution."""
    ways = lgamma(count + 1) - lgamma(hits + 1) - lgamma(count - hits + 1)
    return ways + hits * log(rate) + (count - hits) * log1p(-rate)


def draw_pairs(groups: Int64[np.ndarray, " n"], count: int, seed: int = 0) -> Int64[np.ndarray, "count 2"]:
    """Pairs to look at: a photo of all that are in groups of two or more, and another one of its group."""
    generator = np.random.default_rng(seed)
    sizes = np.bincount(groups[groups != APART], minlength=1)
    grouped = np.flatnonzero((groups != APART) & (sizes[groups] > 1))
    if not len(grouped):
        return np.empty((0, 2), np.int64)
    first = generator.choice(grouped, count)
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], groups[first])
    place = np.empty(len(groups), np.int64)
    place[order] = np.arange(len(groups))
    other = starts + generator.integers(sizes[groups[first]] - 1)
    return np.stack([first, order[other + (other >= place[first])]], 1)
