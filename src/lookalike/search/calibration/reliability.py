"""From which score on do answers stay right on other classes? A curve, its deviation between classes, and a bound."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64

STEPS = 400  # thresholds that are tried
DOUBT = 1.6449  # standard deviations: a chance of 0.05 that the next classes fall short
CONFIDENCE, DRAWS = 0.95, 1000
SPREAD = 25.0  # classes that sure answers must come from, or half of all where there are fewer than twice as many


@dataclass(frozen=True)
class Judgements:
    """Answers to queries of known class, and how much each of them counts."""

    classes: Int64[np.ndarray, " n"]
    answers: Int64[np.ndarray, " n"]
    present: Bool[np.ndarray, " n"]  # whether the class was there to be found
    weights: Float64[np.ndarray, " n"]

    @property
    def right(self) -> Bool[np.ndarray, " n"]:
        return np.asarray(self.classes == self.answers)


@dataclass(frozen=True)
class Curve:
    """Falling thresholds on a score: how many admitted answers are right, and how sure that is."""

    thresholds: Float64[np.ndarray, " steps"]
    precision: Float64[np.ndarray, " steps"]  # the share of right answers among those admitted
    coverage: Float64[np.ndarray, " steps"]  # the share of answerable queries that get a right one
    deviation: Float64[np.ndarray, " steps"]  # standard, of the precision, had other classes been drawn
    spread: Float64[np.ndarray, " steps"]  # how many classes of equal size the admitted queries would be
    parts: Float64[np.ndarray, "steps names"]  # of each class in the deviation
    classes: int  # that were asked

    @staticmethod
    def of(judged: Judgements, scores: Float64[np.ndarray, " n"]) -> "Curve":
        order = np.argsort(-scores, kind="stable")
        falling = scores[order]
        last = np.flatnonzero(np.append(falling[1:] < falling[:-1], True))  # equal scores are admitted together
        ends = last[np.unique(np.linspace(0, len(last) - 1, STEPS).round().astype(int))]
        weights, right = judged.weights[order], judged.right[order]
        names, codes = np.unique(np.concatenate([judged.classes, judged.answers]), return_inverse=True)
        own, answered = codes[: len(order)][order], codes[len(order) :][order]
        deviation, spread, parts = _between_classes(own, answered, right, weights, ends, len(names))
        admitted, hits = weights.cumsum()[ends], (weights * right).cumsum()[ends]
        coverage = hits / max(float(judged.weights[judged.present].sum()), 1e-12)
        classes = len(set(judged.classes.tolist()))
        return Curve(falling[ends], hits / admitted, coverage, deviation, spread, parts, classes)

    @property
    def wide(self) -> Bool[np.ndarray, " steps"]:
        """Where the admitted queries are of enough classes."""
        return np.asarray(self.spread >= min(SPREAD, self.classes / 2))

    def doubt(self, floor: float) -> float:
        """So many deviations away the true curve is nowhere below this one, from `floor` up, with a chance of 0.95.

        A threshold and a level that are chosen by the curve are promised by it too, so one threshold's deviation is
        too little: classes get random signs and sizes (Chernozhukov, Chetverikov, Kato, Annals of Statistics 2014).
        """
        parts = self.parts[self.wide & (self.thresholds >= floor)]
        parts = parts / np.maximum(np.linalg.norm(parts, axis=1, keepdims=True), 1e-12)
        if not len(parts):
            return DOUBT
        draws = np.random.default_rng(0).standard_normal((DRAWS, parts.shape[1]))
        return max(DOUBT, float(np.quantile((draws @ parts.T).max(1), CONFIDENCE)))


def _between_classes(
    own: Int64[np.ndarray, " n"],
    answered: Int64[np.ndarray, " n"],
    right: Bool[np.ndarray, " n"],
    weights: Float64[np.ndarray, " n"],
    ends: Int64[np.ndarray, " steps"],
    classes: int,
) -> tuple[Float64[np.ndarray, " steps"], Float64[np.ndarray, " steps"], Float64[np.ndarray, "steps classes"]]:
    """The deviation of the precision up to each end, the effective number of classes (Kish 1965), and their parts.

    A wrong answer belongs to two classes, the one asked and the one that answered, and confusable classes come in
    pairs: trials that share any class depend on each other (Aronow, Samii, Assenova, Political Analysis 2015).
    """
    _, pairs = np.unique(np.minimum(own, answered) * classes + np.maximum(own, answered), return_inverse=True)
    hits, trials, queries = np.zeros((3, classes))
    wrong = np.zeros(int(pairs.max()) + 1)
    deviation, spread = np.empty((2, len(ends)))
    parts = np.empty((len(ends), classes))
    start = 0
    for step, end in enumerate(ends):
        new = slice(start, end + 1)
        good, weight = right[new], weights[new]
        new_queries = np.bincount(own[new], weight, classes)
        hits += np.bincount(own[new][good], weight[good], classes)
        queries += new_queries
        trials += new_queries + np.bincount(answered[new][~good], weight[~good], classes)
        wrong += np.bincount(pairs[new][~good], weight[~good], len(wrong))
        total = float(queries.sum())
        share = float(hits.sum()) / total
        parts[step] = (hits - share * trials) / total
        variance = (parts[step] ** 2).sum() - (share / total) ** 2 * (wrong**2).sum()  # pairs were counted twice
        deviation[step] = np.sqrt(max(variance, 0.0))
        spread[step] = total**2 / (queries**2).sum()
        start = end + 1
    return deviation, spread, parts


def products(
    values: Float64[np.ndarray, "rows n"], own: Int64[np.ndarray, " n"], answered: Int64[np.ndarray, " n"]
) -> Float64[np.ndarray, " rows"]:
    """The sum, for each row of values, of their products over pairs of trials that share no class."""
    names, codes = np.unique(np.concatenate([own, answered]), return_inverse=True)
    first, second = codes[: len(own)], codes[len(own) :]
    members = np.zeros((len(own), len(names)))
    members[np.arange(len(own)), first] = members[np.arange(len(own)), second] = 1
    wrong = first != second
    pairs = np.unique((np.minimum(first, second) * len(names) + np.maximum(first, second))[wrong], return_inverse=True)
    both = np.eye(len(pairs[0]))[pairs[1]]  # such trials share two classes
    squares = ((some**2).sum(1) for some in (values @ members, values[:, wrong] @ both))
    return np.asarray(values.sum(1) ** 2 - next(squares) + next(squares))


def lowest_reliable(
    curve: Curve, target: float, floor: float = -np.inf, doubt: float = DOUBT
) -> tuple[float | None, int]:
    """The lowest threshold, not below `floor`, at which the next classes reach the target too; None: there is none.

    The next classes deviate as much as these may have, hence √2; and as in conformal prediction one more class is
    counted, all of whose answers are wrong: without errors so far, nothing else would be said of the next one. Where a
    few classes give most of the answers, deviations are no longer normal: the promises made there were not kept.
    The second number is its place on the curve; `doubt`: how many standard deviations the promise keeps away.
    """
    expected = curve.precision * curve.spread / (curve.spread + 1) - doubt * np.sqrt(2) * curve.deviation
    places = np.flatnonzero((expected >= target) & curve.wide & (curve.thresholds >= floor))
    return (float(curve.thresholds[places[-1]]), int(places[-1])) if len(places) else (None, 0)
