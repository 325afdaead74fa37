"""The error of calibration without bias, over bins of equal mass; `benchmarks.verdicts` says how."""

from dataclasses import dataclass

import numpy as np

from lookalike.search.calibration.reliability import products
from lookalike.search.calibration.trials import Trials

BINS = 10


@dataclass(frozen=True)
class Error:
    """The squared error of calibration, without bias; and that of copies of the classes, drawn with replacement."""

    value: float
    copies: list[float]

    @staticmethod
    def of(chance: np.ndarray, true: np.ndarray, weights: np.ndarray, trials: Trials, copies: np.ndarray) -> "Error":
        """Two trials of a bin without a common class are independent: the mean product of their gaps has no bias."""
        order = np.argsort(chance, kind="stable")
        mass = weights[order].cumsum() / weights.sum()
        bins = np.empty(len(order), int)
        bins[order] = np.minimum((mass * BINS).astype(int), BINS - 1)
        times = np.concatenate([np.ones((1, copies.shape[1])), copies])
        gaps, masses = np.zeros((2, len(times)))
        for some in (bins == number for number in range(BINS)):
            here = times[:, trials.classes[some]] * weights[some]
            own, answered = trials.classes[some], trials.answers[some]
            gaps += products(here * (chance[some] - true[some]), own, answered)
            masses += products(here, own, answered)
        values = gaps / np.maximum(masses, 1e-12)
        return Error(float(values[0]), values[1:].tolist())
