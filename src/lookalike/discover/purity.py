"""How pure are groups? A bound from a few pairs that somebody has looked at.

A photo is drawn from all that are in a group, and another one from its group. Where a group holds the share p_c of
class c, the two are of one class with a chance of at most Σ p_c², which is at most the largest share. So the chance
that a pair is of one kind is at most the purity, and a lower bound on it (Clopper and Pearson, Biometrika 1934, exact
for every number of pairs) is one on the purity ([math M-groups]).
"""

from dataclasses import dataclass
from math import comb

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


def lower_bound(right: int, count: int, confidence: float = CONFIDENCE) -> float:
    """The rate at which `right` or more of `count` would be seen with a chance of 1 − `confidence`.

    >>> round(lower_bound(30, 30), 4), lower_bound(0, 30)
    (0.9261, 0.0)
    """
    low, high = 0.0, right / count if count else 0.0
    for _ in range(STEPS):
        rate = (low + high) / 2
        at_least = sum(
            comb(count, hits) * rate**hits * (1 - rate) ** (count - hits) for hits in range(right, count + 1)
        )
        low, high = (rate, high) if at_least < 1 - confidence else (low, rate)
    return low


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
