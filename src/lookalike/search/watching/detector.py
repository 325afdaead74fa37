"""An alarm for scores that have fallen, with a bound on how often it is false.

A block of queries is compared with n ordinary ones. That r of them are lower happens by chance with a probability of at
most p, the upper limit of Clopper and Pearson (Biometrika 1934) for r of n, so that few classes in the reference do not
become certainty. Bets against chance pay ε p^(ε−1), whose mean is at most 1 (Vovk and Wang, Annals of Statistics 2021).
The evidence of all times at which something may have changed is summed up (Shiryaev and Roberts): M ← (M + 1) e. An
alarm at M ≥ c comes after c ordinary blocks on average, or later (e-detectors: Shin, Ramdas and Rinaldo 2024).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float64

from lookalike.search.watching.reference import BLOCK

RARE = 2_000  # blocks: ordinary queries raise at most one false alarm in so many
DOUBT = 0.01  # that a limit on p is too low
BETS = (0.3, 0.5, 0.7)  # ε
STAKE = 0.25  # of what there is, on a mark being wrong


def limits(n: int) -> Float64[np.ndarray, " n1"]:
    """For every r from 0 to n: the largest p at which r or fewer of n are lower with a probability of DOUBT.

    >>> limits(100)[[0, 100]].round(3).tolist()
    [0.045, 1.0]
    """
    count = np.arange(n + 1)
    ways = np.array([math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in range(n + 1)])
    low, high = np.zeros(n + 1), np.ones(n + 1)
    for _ in range(50):
        middle = np.clip((low + high) / 2, 1e-300, 1 - 1e-16)[:, None]
        terms = np.exp(ways + count * np.log(middle) + (n - count) * np.log1p(-middle))
        below = np.tril(terms).sum(1) > DOUBT
        low, high = np.where(below, middle[:, 0], low), np.where(below, high, middle[:, 0])
    return np.where(count == n, 1.0, high)


@dataclass
class Detector:
    """Watches one score. `reference`: means of ordinary blocks, rising."""

    reference: Sequence[float]
    evidence: float = 0.0  # M
    alarms: int = 0
    _block: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._limits = limits(len(self.reference))

    def add(self, score: float) -> bool:
        """One query; whether the block it completes raises an alarm."""
        self._block.append(score)
        if len(self._block) < BLOCK:
            return False
        mean = float(np.mean(self._block))
        self._block.clear()
        p = float(self._limits[np.searchsorted(self.reference, mean, side="right")])
        self.evidence = (self.evidence + 1) * float(np.mean([bet * p ** (bet - 1) for bet in BETS]))
        if self.evidence < RARE:
            return False
        self.evidence, self.alarms = 0.0, self.alarms + 1
        return True


@dataclass
class PromiseDetector:
    """Watches whether answers called sure are right as often as was promised, by what people mark.

    A quarter is bet on each being wrong: it pays 1/s where a share s may be wrong, so 1 on average if s are.
    """

    target: float
    evidence: float = 0.0
    alarms: int = 0

    def add(self, right: bool) -> bool:
        wrong = max(1 - self.target, 1e-6)
        self.evidence = (self.evidence + 1) * (1 + STAKE * (float(not right) - wrong) / wrong)
        if self.evidence < RARE:
            return False
        self.evidence, self.alarms = 0.0, self.alarms + 1
        return True
