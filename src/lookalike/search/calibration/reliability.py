"""From which score on do answers stay right on other classes? A curve, its deviation between classes, and a bound."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64

from lookalike.search.calibration.trials import Trials

STEPS = 400  # thresholds that are tried
DOUBT = 1.2816  # standard deviations: a chance of 0.1 that the next classes fall short
SPREAD = 25.0  # classes that sure answers must come from, or half of all where there are fewer than twice as many


@dataclass(frozen=True)
class Curve:
    """Falling thresholds on a score: how many admitted answers are right, and how sure that is."""

    thresholds: Float64[np.ndarray, " steps"]
    precision: Float64[np.ndarray, " steps"]  # the share of right answers among those admitted
    coverage: Float64[np.ndarray, " steps"]  # the share of answerable queries that get a right one
    deviation: Float64[np.ndarray, " steps"]  # standard, of the precision, had other classes been drawn
    spread: Float64[np.ndarray, " steps"]  # how many classes of equal size the admitted queries would be
    classes: int  # that were asked

    @staticmethod
    def of(trials: Trials, scores: Float64[np.ndarray, " n"]) -> "Curve":
        order = np.argsort(-scores, kind="stable")
        falling = scores[order]
        last = np.flatnonzero(np.append(falling[1:] < falling[:-1], True))  # equal scores are admitted together
        ends = last[np.unique(np.linspace(0, len(last) - 1, STEPS).round().astype(int))]
        right = trials.right[order]
        total = right.cumsum()[ends]
        names, codes = np.unique(np.array([*trials.classes, *trials.answers]), return_inverse=True)
        own, answered = codes[: len(order)][order], codes[len(order) :][order]
        deviation, spread = _between_classes(own, answered, right, ends, len(names))
        coverage = total / max(1, int(trials.present.sum()))
        return Curve(falling[ends], total / (ends + 1), coverage, deviation, spread, len(set(trials.classes)))


def _between_classes(
    own: Int64[np.ndarray, " n"],
    answered: Int64[np.ndarray, " n"],
    right: Bool[np.ndarray, " n"],
    ends: Int64[np.ndarray, " steps"],
    classes: int,
) -> tuple[Float64[np.ndarray, " steps"], Float64[np.ndarray, " steps"]]:
    """The standard deviation of the precision up to each end, and the effective number of classes (Kish 1965).

    A wrong answer belongs to two classes, the one asked and the one that answered, and confusable classes come in
    pairs: trials that share any class depend on each other (Aronow, Samii, Assenova, Political Analysis 2015).
    """
    _, pairs = np.unique(np.minimum(own, answered) * classes + np.maximum(own, answered), return_inverse=True)
    hits, trials, queries = np.zeros((3, classes))
    wrong = np.zeros(int(pairs.max()) + 1)
    deviation, spread = np.empty((2, len(ends)))
    start = 0
    for step, end in enumerate(ends):
        new = slice(start, end + 1)
        good = right[new]
        hits += np.bincount(own[new][good], minlength=classes)
        queries += np.bincount(own[new], minlength=classes)
        trials += np.bincount(own[new], minlength=classes) + np.bincount(answered[new][~good], minlength=classes)
        wrong += np.bincount(pairs[new][~good], minlength=len(wrong))
        share = float(hits.sum()) / (end + 1)
        variance = ((hits - share * trials) ** 2).sum() - share**2 * (wrong**2).sum()  # pairs were counted twice
        deviation[step] = np.sqrt(max(variance, 0.0)) / (end + 1)
        spread[step] = (end + 1) ** 2 / (queries**2).sum()
        start = end + 1
    return deviation, spread


def lowest_reliable(curve: Curve, target: float) -> tuple[float | None, int]:
    """The lowest threshold at which the next classes reach the target as well, and its place; None: there is none.

    The next classes deviate as much as these may have, hence √2; and as in conformal prediction one more class is
    counted, all of whose answers are wrong: without errors so far, nothing else would be said of the next one. Where a
    few classes give most of the answers, deviations are no longer normal: the promises made there were not kept.
    """
    expected = curve.precision * curve.spread / (curve.spread + 1) - DOUBT * np.sqrt(2) * curve.deviation
    places = np.flatnonzero((expected >= target) & (curve.spread >= min(SPREAD, curve.classes / 2)))
    return (float(curve.thresholds[places[-1]]), int(places[-1])) if len(places) else (None, 0)


def even_odds(scores: Float64[np.ndarray, " n"], right: Bool[np.ndarray, " n"], sure: float | None) -> float:
    """The lowest score at which a right answer is at least as likely as a wrong one."""
    order = np.argsort(scores, kind="stable")
    chances = _isotonic(right[order].astype(np.float64))
    likely = np.flatnonzero(chances >= 0.5)
    lowest = float(scores[order][likely[0]]) if len(likely) else float(scores.max())
    return lowest if sure is None else min(lowest, sure)


def _isotonic(values: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    """The nearest rising sequence: neighbours that fall are pooled (Ayer et al. 1955)."""
    means: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        means.append(value)
        sizes.append(1)
        while len(means) > 1 and means[-2] >= means[-1]:
            size = sizes[-2] + sizes[-1]
            means[-2:] = [(means[-2] * sizes[-2] + means[-1] * sizes[-1]) / size]
            sizes[-2:] = [size]
    return np.repeat(means, sizes)
