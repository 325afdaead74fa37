"""When to believe an answer: thresholds on the similarity of the best hit, with a confidence bound over classes.

A trial is one labelled image asked against a gallery, twice: with its class in it, where the best hit may be right, and
without, where it is always wrong. `sure` is the lowest threshold from which on the share of right answers reaches the
target, less what both this sample of classes and the next one may deviate (bootstrap over classes); `maybe` is where
right answers are still as likely as wrong ones (isotonic regression).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int64

from lookalike.errors import check
from lookalike.search.items import Verdict

DRAWS = 500
STEPS = 400  # thresholds that are tried
DOUBT = 0.15  # the chance that the next classes fall short of the target; measured: 0.02 to 0.1 (docs/search.md)
LEAST = 5  # classes with right answers: fewer show nothing
GROWTH = 1.5  # an index this many times as large needs a new calibration


@dataclass(frozen=True)
class Trials:
    """Answers to queries of known class: the similarity of the best hit, and the two classes."""

    similarities: Float64[np.ndarray, " n"]
    classes: Sequence[str]  # of the queries
    answers: Sequence[str]  # the classes of their best hits
    present: Bool[np.ndarray, " n"]  # whether the class was there to be found

    @property
    def right(self) -> Bool[np.ndarray, " n"]:
        return np.array([query == answer for query, answer in zip(self.classes, self.answers, strict=True)], bool)


@dataclass(frozen=True)
class Calibration:
    """What the similarity of a best hit means."""

    target: float  # the share of sure answers that are right
    sure: float | None  # None: no threshold reaches the target
    maybe: float
    precision: float  # of the sure answers, as measured
    interval: tuple[float, float]  # of that, over classes
    coverage: float  # the share of answerable queries that get a sure answer
    classes: int
    queries: int
    items: int
    generation: int
    date: str
    source: str  # "index", or "run": measured on the test classes of the run that made the model
    seen_in_training: bool = False
    curve: Sequence[tuple[float, float, float]] = field(default_factory=tuple)  # threshold, precision, coverage

    def verdict(self, similarity: float) -> Verdict:
        if self.sure is not None and similarity >= self.sure:
            return "sure"
        return "maybe" if similarity >= self.maybe else "unknown"

    def meaning(self, verdict: Verdict) -> str:
        """The verdict in one sentence."""
        if verdict == "sure":
            return f"At least {self.target:.0%} of answers this similar are right."
        if verdict == "maybe":
            return "An answer this similar is more likely right than wrong."
        return "An answer no more similar than this is more likely wrong than right."

    def stale(self, items: int, generation: int) -> str | None:
        """Why it should be measured again, if it should."""
        if generation != self.generation:
            return "the index has a new generation of vectors since it was calibrated"
        if items > GROWTH * self.items:
            return f"the index has grown from {self.items:,} to {items:,} items since it was calibrated"
        return None

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(content: dict[str, Any]) -> "Calibration":
        curve = tuple((float(a), float(b), float(c)) for a, b, c in content["curve"])
        low, high = content["interval"]
        return Calibration(**{**content, "curve": curve, "interval": (low, high)})


def calibrate(trials: Trials, target: float, seed: int = 0, **facts: Any) -> Calibration:
    """Thresholds from trials; `facts` are kept with them."""
    check(0.5 < target < 1, f"the precision to reach lies between 0.5 and 1, not {target:g}")
    check(bool(trials.right.any()), "no answer was right, so no similarity can be trusted: check the labels")
    number = len(set(trials.classes))
    check(number >= LEAST, f"{number} classes are too few to calibrate with: give images of at least {LEAST} classes")
    curve = _Curve.of(trials)
    sampled = _resampled(trials, curve, seed)
    place = _lowest_reliable(curve, sampled, target)
    sure = None if place is None else float(curve.thresholds[place])
    low, high = (0.0, 0.0) if place is None else np.quantile(sampled[:, place], (0.025, 0.975)).tolist()
    points = list(zip(curve.thresholds.tolist(), curve.precision.tolist(), curve.coverage.tolist(), strict=True))
    return Calibration(
        target,
        sure,
        _even_odds(trials, sure),
        0.0 if place is None else float(curve.precision[place]),
        (low, high),
        0.0 if place is None else float(curve.coverage[place]),
        number,
        int(trials.present.sum()),
        curve=tuple(points[:: max(1, len(points) // 100)]),
        **facts,
    )


@dataclass(frozen=True)
class _Curve:
    """Falling thresholds: the share of right answers among those admitted, and of answerable queries that get one."""

    order: Int64[np.ndarray, " n"]  # the trials, most similar first
    ends: Int64[np.ndarray, " steps"]  # the last trial that each threshold admits
    thresholds: Float64[np.ndarray, " steps"]
    precision: Float64[np.ndarray, " steps"]
    coverage: Float64[np.ndarray, " steps"]
    supported: Bool[np.ndarray, " steps"]  # right answers in enough classes to show anything

    @staticmethod
    def of(trials: Trials) -> "_Curve":
        order = np.argsort(-trials.similarities, kind="stable")
        falling = trials.similarities[order]
        last = np.flatnonzero(np.append(falling[1:] < falling[:-1], True))  # equal similarities are admitted together
        ends = last[np.unique(np.linspace(0, len(last) - 1, STEPS).round().astype(int))]
        right = trials.right[order]
        total = right.cumsum()[ends]
        _, codes = np.unique(np.array(trials.classes)[order], return_inverse=True)
        first = np.zeros(len(order), bool)
        hits = np.flatnonzero(right)
        first[hits[np.unique(codes[hits], return_index=True)[1]]] = True  # the first right answer of each class
        return _Curve(
            order, ends, falling[ends], total / (ends + 1), total / max(1, int(trials.present.sum())),
            first.cumsum()[ends] >= LEAST,
        )  # fmt: skip


def _resampled(trials: Trials, curve: _Curve, seed: int) -> Float64[np.ndarray, "draws steps"]:
    """The precision at every threshold, had other classes been drawn.

    A wrong answer belongs to two classes, the one asked and the one that answered, and counts as often as both are
    drawn: confusable classes come in pairs, and taking them for independent would hide half of the noise.
    """
    names, codes = np.unique(np.array([*trials.classes, *trials.answers]), return_inverse=True)
    asked, answered = codes[: len(trials.classes)][curve.order], codes[len(trials.classes) :][curve.order]
    right = trials.right[curve.order]
    generator = np.random.default_rng(seed)
    result = np.empty((DRAWS, len(curve.ends)))
    for draw in range(DRAWS):
        times = np.bincount(generator.integers(0, len(names), len(names)), minlength=len(names)).astype(float)
        weights = np.where(right, times[asked], times[asked] * times[answered])
        admitted = weights.cumsum()[curve.ends]
        result[draw] = (weights * right).cumsum()[curve.ends] / np.maximum(admitted, 1)
    return result


def _lowest_reliable(curve: _Curve, sampled: Float64[np.ndarray, "draws steps"], target: float) -> int | None:
    """The lowest threshold at which the next classes reach the target as well, but for a chance of `DOUBT`.

    The next classes deviate as much as these may have: the deviations of two independent draws are added.
    """
    expected = sampled + (np.roll(sampled, 1, axis=0) - curve.precision)
    places = np.flatnonzero((np.quantile(expected, DOUBT, axis=0) >= target) & curve.supported)
    return int(places[-1]) if len(places) else None


def _even_odds(trials: Trials, sure: float | None) -> float:
    """The lowest similarity at which a right answer is at least as likely as a wrong one."""
    order = np.argsort(trials.similarities, kind="stable")
    chances = _isotonic(trials.right[order].astype(np.float64))
    likely = np.flatnonzero(chances >= 0.5)
    lowest = float(trials.similarities[order][likely[0]]) if len(likely) else float(trials.similarities.max())
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
