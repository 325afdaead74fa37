"""When to believe an answer: thresholds on the chance that the best hit is right, with a bound over classes.

A trial is one labelled image asked against a gallery, twice: with its class in it, where the best hit may be right,
and without, where it is always wrong. Its score is the chance that logistic regression reads from the first hits
(evidence.py), or the similarity of the best one where there are no labels to read. `sure` is the lowest score from
which on the share of right answers reaches the target on other classes too; `maybe` is where right answers are still
as likely as wrong ones (isotonic regression).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lookalike.errors import check
from lookalike.search.calibration import evidence
from lookalike.search.calibration.reliability import Curve, even_odds, lowest_reliable
from lookalike.search.calibration.trials import Trials
from lookalike.search.items import Verdict

LEAST = 5  # classes: fewer show nothing
GROWTH = 1.5  # an index this many times as large needs a new calibration


@dataclass(frozen=True)
class Calibration:
    """What the first hits of a query mean."""

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
    weights: Sequence[float] = ()  # of the evidence; none: `sure` and `maybe` are similarities
    by_similarity: tuple[float | None, float] | None = None  # sure and maybe, for hits without labels

    def chance(self, rows: evidence.Evidence) -> float | None:
        """The chance that the best hit is right; None where only similarities were measured."""
        return float(evidence.chance(rows, self.weights)[0]) if self.weights else None

    def verdict(self, similarity: float, chance: float | None = None) -> Verdict:
        """By the chance; without one by the similarity of the best hit, which tells less."""
        value, sure, maybe = similarity, self.sure, self.maybe
        if chance is not None:
            value = chance
        elif self.by_similarity is not None:
            sure, maybe = self.by_similarity
        if sure is not None and value >= sure:
            return "sure"
        return "maybe" if value >= maybe else "unknown"

    def meaning(self, verdict: Verdict) -> str:
        """The verdict in one sentence."""
        if verdict == "sure":
            return f"At least {self.target:.0%} of answers like this one are right."
        if verdict == "maybe":
            return "An answer like this one is more likely right than wrong."
        return "An answer like this one is more likely wrong than right."

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
        plain = content.get("by_similarity")
        rest = {"weights": tuple(content.get("weights", ())), "by_similarity": None if plain is None else tuple(plain)}
        return Calibration(**{**content, **rest, "curve": curve, "interval": (low, high)})


def calibrate(trials: Trials, target: float, **facts: Any) -> Calibration:
    """Thresholds from trials; `facts` are kept with them."""
    check(0.5 < target < 1, f"the precision to reach lies between 0.5 and 1, not {target:g}")
    right = trials.right
    check(bool(right.any()), "no answer was right, so no similarity can be trusted: check the labels")
    number = len(set(trials.classes))
    check(number >= LEAST, f"{number} classes are too few to calibrate with: give images of at least {LEAST} classes")
    weights: Sequence[float] = ()
    scores, plain = trials.similarities, None
    if trials.evidence is not None:
        weights = evidence.fit(trials.evidence, right)
        scores = evidence.chance(trials.evidence, weights)
        sure = lowest_reliable(Curve.of(trials, trials.similarities), target)[0]
        plain = (sure, even_odds(trials.similarities, right, sure))
    curve = Curve.of(trials, scores)
    sure, place = lowest_reliable(curve, target)
    spread = 1.96 * curve.deviation[place]
    precision = 0.0 if sure is None else float(curve.precision[place])
    points = list(zip(curve.thresholds.tolist(), curve.precision.tolist(), curve.coverage.tolist(), strict=True))
    return Calibration(
        target,
        sure,
        even_odds(scores, right, sure),
        precision,
        (0.0, 0.0) if sure is None else (max(0.0, precision - spread), min(1.0, precision + spread)),
        0.0 if sure is None else float(curve.coverage[place]),
        number,
        int(trials.present.sum()),
        curve=tuple(points[:: max(1, len(points) // 100)]),
        weights=weights,
        by_similarity=plain,
        **facts,
    )
