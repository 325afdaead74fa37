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
from jaxtyping import Bool, Float64

from lookalike.errors import check
from lookalike.search.items import Verdict

DRAWS = 1000
STEPS = 400  # thresholds that are tried
DOUBT = 0.1  # the chance that the next classes fall short of the target
GROWTH = 1.5  # an index this many times as large needs a new calibration


@dataclass(frozen=True)
class Trials:
    """Answers to queries of known class: the best similarity, whether it is right, and the class that was asked."""

    similarities: Float64[np.ndarray, " n"]
    right: Bool[np.ndarray, " n"]
    classes: Sequence[str]
    present: Bool[np.ndarray, " n"]  # whether the class was there to be found


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
    thresholds = _thresholds(trials.similarities)
    counts = _Counts.of(trials, thresholds)
    number = len(counts.right)
    check(number >= 5, f"{number} classes are too few to calibrate with: give images of at least 5 classes")
    draw = np.random.default_rng(seed).multinomial(number, np.full(number, 1 / number), DRAWS)
    place = _first_reliable(counts, draw, target)
    curve = tuple(zip(thresholds.tolist(), counts.precision().tolist(), counts.coverage().tolist(), strict=True))
    kept: Any = [] if place is None else _precisions(counts, draw)[:, place]
    return Calibration(
        target,
        None if place is None else float(thresholds[place]),
        _even_odds(trials, None if place is None else float(thresholds[place])),
        0.0 if place is None else float(counts.precision()[place]),
        (0.0, 0.0) if place is None else (float(np.quantile(kept, 0.025)), float(np.quantile(kept, 0.975))),
        0.0 if place is None else float(counts.coverage()[place]),
        number,
        int(trials.present.sum()),
        curve=curve[:: max(1, len(curve) // 100)],
        **facts,
    )


def _thresholds(similarities: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " steps"]:
    """Falling thresholds, each admitting about as many more trials as the one before."""
    return np.asarray(np.unique(np.quantile(similarities, np.linspace(0, 1, STEPS), method="lower"))[::-1])


@dataclass(frozen=True)
class _Counts:
    """Per class and threshold how many trials are admitted: right ones, wrong ones; and those that could be right."""

    right: Float64[np.ndarray, "classes steps"]
    wrong: Float64[np.ndarray, "classes steps"]
    possible: Float64[np.ndarray, " classes"]

    @staticmethod
    def of(trials: Trials, thresholds: Float64[np.ndarray, " steps"]) -> "_Counts":
        names, codes = np.unique(np.array(trials.classes, dtype=object).astype(str), return_inverse=True)
        admitted = len(thresholds) - np.searchsorted(thresholds[::-1], trials.similarities, side="right")
        shape = (len(names), len(thresholds) + 1)
        tallies = [np.zeros(shape), np.zeros(shape)]
        for tally, chosen in zip(tallies, (trials.right, ~trials.right), strict=True):
            np.add.at(tally, (codes[chosen], admitted[chosen]), 1)
        possible = np.bincount(codes[trials.present], minlength=len(names)).astype(float)
        return _Counts(tallies[0].cumsum(1)[:, :-1], tallies[1].cumsum(1)[:, :-1], possible)

    def precision(self) -> Float64[np.ndarray, " steps"]:
        right, wrong = self.right.sum(0), self.wrong.sum(0)
        return np.asarray(right / np.maximum(right + wrong, 1))

    def coverage(self) -> Float64[np.ndarray, " steps"]:
        return np.asarray(self.right.sum(0) / max(1.0, self.possible.sum()))


def _precisions(counts: _Counts, draw: Any) -> Float64[np.ndarray, "draws steps"]:
    right, wrong = draw @ counts.right, draw @ counts.wrong
    return np.asarray(right / np.maximum(right + wrong, 1))


def _first_reliable(counts: _Counts, draw: Any, target: float) -> int | None:
    """The lowest threshold at which the next classes reach the target as well, but for a chance of `DOUBT`.

    The next classes deviate as much as these may have: the deviations of two independent draws are added.
    """
    sampled, here = _precisions(counts, draw), counts.precision()
    expected = sampled + (np.roll(sampled, 1, axis=0) - here)
    reached = np.quantile(expected, DOUBT, axis=0) >= target
    reached &= counts.right.sum(0) >= 3 / (1 - target) * target / 3  # fewer could not show it
    places = np.flatnonzero(reached)
    return int(places[-1]) if len(places) else None


def _even_odds(trials: Trials, sure: float | None) -> float:
    """The lowest similarity at which a right answer is at least as likely as a wrong one."""
    order = np.argsort(trials.similarities, kind="stable")
    chances = _isotonic(trials.right[order].astype(float))
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
