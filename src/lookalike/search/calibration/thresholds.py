"""When to believe an answer: what a calibration keeps, says and promises.

`sure` is the lowest chance (chances.py) from which on the share of right answers reaches the target on other classes
too (reliability.py).
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from lookalike.errors import check
from lookalike.search.calibration import logistic
from lookalike.search.calibration.chances import (
    EVEN,
    FALSE_ALARMS,
    Models,
    chances,
    fitted,
    in_percent,
    looks_strange,
    quantile,
)
from lookalike.search.calibration.evidence import IN_0_2_0, SeenHits, read
from lookalike.search.calibration.foreign import Familiar
from lookalike.search.calibration.reliability import Curve, Judgements, lowest_reliable
from lookalike.search.calibration.trials import STATES, TrialBatch, Trials, best_rule, judged
from lookalike.search.items import Vectors, Verdict

LEAST = 5  # classes: fewer show nothing
GROWTH = 1.5  # an index that has grown so many times since it was calibrated needs a new calibration
FARTHEST = 4.0  # growth that chances still account for; an index is larger than the test photos of a run anyway
USUAL = 0.95
ENOUGH = 19  # classes for that: n of them promise at most n of n + 1
LEVELS = (USUAL, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6)  # promises that are tried where none is asked for
USEFUL = 0.25  # the share of answerable queries that a promise should reach
FIRM = 0.8  # a promise is not lowered beyond this to reach more of them


@dataclass(frozen=True)
class JudgedLabel:
    """What the hits of one query mean: the places of its label and of the next one (-1: none) among them."""

    place: int
    second: int
    chance: float | None
    match: float | None = None
    either: float | None = None
    strange: bool = False  # nothing in the index is like it


@dataclass(frozen=True)
class Calibration:
    """What the first hits of a query mean."""

    target: float  # the share of sure answers that are right
    sure: float | None  # None: no threshold reaches the target
    maybe: float  # in version 0.2.0, the lowest chance of a maybe; since then 0
    precision: float  # of the sure answers, as measured
    interval: tuple[float, float]  # of that, over classes
    coverage: float  # the share of answerable queries that get a sure answer
    classes: int
    queries: int
    items: int  # that had labels
    generation: int
    date: str
    source: str  # "data", "index" (its own items), or "run": the test classes of the run that made the model
    seen_in_training: bool = False
    curve: Sequence[tuple[float, float, float]] = field(default_factory=tuple)  # threshold, precision, coverage
    weights: Sequence[float] = ()  # of the evidence, as version 0.2.0 measured it
    by_similarity: tuple[float | None, float] | None = None  # sure and maybe, for hits without labels
    models: Models | None = None
    doubling: float = 0.0  # the share of labels that half as many classes get right beyond these
    reason: str = ""  # why this level, where none was asked for

    def judge(self, seen: SeenHits, query: Vectors | None = None) -> JudgedLabel:
        """The label of one query by its labelled hits, and the chances of it; `query`: its own vector, one row."""
        if self.models is None:
            reading = read(seen, None)
            rows = reading.evidence[:, :IN_0_2_0]
            known = float(logistic.chance(rows, self.weights)[0]) if self.weights else None
            return JudgedLabel(int(reading.place[0]), int(reading.second[0]), known)
        near = SeenHits(seen.similarities, seen.labels, seen.sizes, seen.mutual, np.minimum(seen.items, self._largest))
        reading = read(near, self.models.rule)
        match, chance, either = chances(reading.evidence, self.models)
        vector = np.zeros((1, 0), np.float32) if query is None else query
        strange = bool(looks_strange(reading.evidence, match, chance, self.models, vector)[0])
        found = min(float(match[0]), EVEN) if strange else float(match[0])  # hits alone do not tell
        return JudgedLabel(
            int(reading.place[0]), int(reading.second[0]), float(chance[0]), found, float(either[0]), strange
        )

    @property
    def _largest(self) -> float:
        return FARTHEST * max(self.items, 1)

    def verdict(self, similarity: float, chance: float | None = None, strange: bool = False) -> Verdict:
        """By the chances; without them by the similarity of the best hit, which tells less."""
        value, sure, maybe = similarity, self.sure, self.maybe
        if chance is not None:
            value = chance
        elif self.by_similarity is not None:
            sure, maybe = self.by_similarity
        if sure is not None and value >= sure:
            return "sure"
        if chance is not None and self.models is not None:
            return "unknown" if strange else "maybe"
        return "maybe" if value >= maybe else "unknown"

    def meaning(self, verdict: Verdict, chance: float | None = None) -> str:
        """The verdict in one sentence."""
        if verdict == "sure":
            return f"At least {self.target:.0%} of the answers called sure are right."
        if self.models is None:
            likely = "right than wrong" if verdict == "maybe" else "wrong than right"
            return f"An answer like this one is more likely {likely}."
        if verdict == "unknown":
            return f"At most {FALSE_ALARMS:.0%} of pictures whose class is in the index look as strange as this one."
        if chance is None:
            return "The hits have no labels, so no chance can be given."
        return f"About {in_percent(chance)} of answers like this one are right."

    @property
    def promise(self) -> str:
        """What sure answers promise, and what more classes would."""
        if self.sure is None:
            more = f"; {USUAL:.0%} takes at least {ENOUGH}" if self.classes < ENOUGH else ""
            return (
                f"No answer is called sure: {self.classes:,} classes like these cannot promise {self.target:.0%}{more}."
            )
        why = bound_by(self.classes) or self.reason
        more = f" ({why})" if why and self.target < USUAL else ""
        return (
            f"At least {self.target:.0%} of the answers called sure are right{more}; "
            f"they cover {self.coverage:.0%} of the queries whose class is in the index."
        )

    def stale(self, items: int, generation: int) -> str | None:
        """Why it should be measured again, if it should; `items`: how many have labels now."""
        if generation != self.generation:
            return "the index has a new generation of vectors since it was calibrated"
        of_run = self.source == "run"
        if items <= (FARTHEST if of_run else GROWTH) * self.items:
            return None
        why = f"the index has grown from {self.items:,} to {items:,} items since it was calibrated"
        if of_run:
            why = f"chances were measured among {self.items:,} test photos, and the index has {items:,} items"
        lost = self.doubling * np.log2(items / max(self.items, 1))
        return why + (f"; about {lost:.0%} fewer labels are right than then" if lost >= 0.005 else "")

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(content: dict[str, Any]) -> "Calibration":
        curve = tuple((float(a), float(b), float(c)) for a, b, c in content["curve"])
        low, high = content["interval"]
        plain, models = content.get("by_similarity"), content.get("models")
        rest = {
            "weights": tuple(content.get("weights", ())),
            "by_similarity": None if plain is None else tuple(plain),
            "models": None if models is None else Models.from_json(models),
        }
        return Calibration(**{**content, **rest, "curve": curve, "interval": (low, high)})


def bound_by(classes: int) -> str:
    """What so few classes cannot promise, however right their answers are; nothing where they are enough."""
    if classes >= ENOUGH:
        return ""
    most = math.floor(100 * classes / (classes + 1))
    return f"{classes:,} classes can promise at most {most}%; {USUAL:.0%} takes at least {ENOUGH}"


def possible(classes: int | None) -> str:
    """What answers could promise, were they calibrated with so many classes (None: nobody has counted them)."""
    advice = "Answers are uncalibrated: lookalike calibrate measures how far to trust them."
    if classes is None:
        return advice
    if classes < LEAST:
        return f"Answers stay uncalibrated: that takes at least {LEAST} classes of two photos, and there are {classes}."
    return f"{advice} {bound_by(classes) or f'{classes:,} classes are enough to promise {USUAL:.0%}'}."


def calibrate(
    batches: Sequence[TrialBatch], target: float | None = None, familiar: Familiar | None = None, **facts: Any
) -> Calibration:
    """Chances and thresholds from trials; without a `target` at the highest level they support; `facts` are kept.

    `familiar`: how the queries differ from pictures of nothing, where the network could be asked.
    """
    check(target is None or 0.5 < target < 1, f"the precision to reach lies between 0.5 and 1, not {target}")
    number = len({name for batch in batches if batch.photos[0] > 0 for name in batch.classes.tolist()})
    check(
        number >= LEAST,
        f"{number} classes of two images or more are too few to calibrate with: at least {LEAST} are needed",
    )
    rule = best_rule(batches)
    every = judged(batches, rule)
    trials = every.take(every.classes >= 0)
    check(bool(trials.right.any()), "no answer was right, so no similarity can be trusted: check the labels")
    models, chance = fitted(trials, every.take(every.classes < 0), rule, familiar)
    whole = trials.take(trials.whole)
    curve = Curve.of(Judgements(whole.classes, whole.answers, whole.present, whole.weights), chance[trials.whole])
    level, sure, place, reason = _promised(curve, target)
    nearest = Curve.of(Judgements(whole.classes, whole.nearest, whole.present, whole.weights), whole.similarities)
    strange = quantile(whole.similarities[whole.present], whole.weights[whole.present], FALSE_ALARMS)
    spread = 1.96 * curve.deviation[place]
    precision = 0.0 if sure is None else float(curve.precision[place])
    points = list(zip(curve.thresholds.tolist(), curve.precision.tolist(), curve.coverage.tolist(), strict=True))
    return Calibration(
        level,
        sure,
        0.0,
        precision,
        (0.0, 0.0) if sure is None else (max(0.0, precision - spread), min(1.0, precision + spread)),
        0.0 if sure is None else float(curve.coverage[place]),
        number,
        int((whole.photos == STATES[-1]).sum()),
        curve=tuple(points[:: max(1, len(points) // 100)]),
        by_similarity=(lowest_reliable(nearest, level)[0], strange),
        models=models,
        doubling=max(0.0, _right(trials.take(~trials.whole)) - _right(whole)),
        reason=reason,
        **facts,
    )


def _promised(curve: Curve, target: float | None) -> tuple[float, float | None, int, str]:
    """The level, its threshold, the place of that on the curve, and why this level."""
    levels = LEVELS if target is None else (target,)
    doubt = curve.doubt(min(levels))
    found = [(level, *lowest_reliable(curve, level, level, doubt)) for level in levels]  # as likely as it promises
    reached = [(level, sure, place) for level, sure, place in found if sure is not None]
    if not reached:
        return levels[-1], None, 0, ""
    if target is not None:
        return (*reached[0], "")
    useful = [one for one in reached if curve.coverage[one[2]] >= USEFUL and one[0] >= FIRM]
    if useful:
        return (*useful[0], f"the highest level that covers {USEFUL:.0%} of the queries or more")
    firm = [one for one in reached if one[0] >= FIRM]
    if firm:
        return (*firm[-1], f"no level from {FIRM:.0%} up covers {USEFUL:.0%} of the queries; this one covers most")
    return (*reached[0], f"the highest level that {curve.classes:,} classes support")


def _right(trials: Trials) -> float:
    """The share of right labels where the class is there; 0 where nothing was asked."""
    there = trials.present
    return float(np.average(trials.right[there], weights=trials.weights[there])) if there.any() else 0.0
