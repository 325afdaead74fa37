"""When to believe an answer: is anything like it here, which label is it, and how sure is that?

`match` is the chance that the class of a query is in the index, `chance` that its label is right: logistic regressions
on what the first hits say (evidence.py), fitted to trials in which classes are absent, have one photo, three, or all
(trials.py). A label can be right only where its class is there: chance = match · P(right | there), calibrated again.
`sure` is the lowest chance from which on the share of right answers reaches the target on other classes too
(reliability.py). `unknown` is a query whose match is lower, or whose first hits are less similar, than those of nearly
all trials whose class is there: similarities to the nearest items tell strangers apart (Sun, Ming, Zhu, Li, ICML 2022).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64

from lookalike.errors import check
from lookalike.search.calibration import logistic
from lookalike.search.calibration.evidence import AHEAD, BEST, FIRST, IN_0_2_0, ITEMS, SIZE, Rule, SeenHits, read
from lookalike.search.calibration.reliability import Curve, Judgements, lowest_reliable
from lookalike.search.calibration.trials import STATES, TrialBatch, Trials, best_rule, judged
from lookalike.search.items import Verdict

LEAST = 5  # classes: fewer show nothing
GROWTH = 1.5  # an index this many times as large needs a new calibration
FARTHEST = 4.0  # growth that chances still account for
FALSE_ALARMS = 0.05  # of the queries whose class is there, at most so many are called unknown
FEW = 3  # photos of a class
TAKEN = 0.04  # of the trials, so that other classes keep to it
EVEN = 0.5  # a match: what is there as likely as not is not called unknown
STEPS = 9  # shares that are tried for each of two thresholds
STRANGERS = 0.1  # their weight beside the trials, where `match` is fitted
USUAL = 0.95
LEVELS = (USUAL, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6)  # promises that are tried where none is asked for
USEFUL = 0.25  # the share of answerable queries that a promise should reach
FIRM = 0.8  # a promise is not lowered beyond this to reach more of them


@dataclass(frozen=True)
class Models:
    """Weights of the evidence for each chance, and the rule by which labels follow from hits."""

    sharpness: float
    evenness: float
    match: Sequence[float]
    given: Sequence[float]  # the label is right, if the class is there
    either: Sequence[float]  # the label or the next one is
    line: tuple[float, ...]  # through the logit of match · given, and what labels of one photo and of few add
    unknown: float  # of match
    familiar: float  # the similarity that all but few best hits have where the class is there
    usual: tuple[float, float] | None = None  # the least similarity of first hits, over the logarithm of the items

    @property
    def rule(self) -> Rule:
        return Rule(self.sharpness, self.evenness)

    @staticmethod
    def from_json(content: dict[str, Any]) -> "Models":
        lists = {name: tuple(content[name]) for name in ("match", "given", "either", "line")}
        usual = content.get("usual")
        return Models(**{**content, **lists, "usual": None if usual is None else tuple(usual)})


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
    items: int
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

    def judge(self, seen: SeenHits) -> JudgedLabel:
        """The label of one query by its labelled hits, and the chances of it."""
        if self.models is None:
            reading = read(seen, None)
            rows = reading.evidence[:, :IN_0_2_0]
            known = float(logistic.chance(rows, self.weights)[0]) if self.weights else None
            return JudgedLabel(int(reading.place[0]), int(reading.second[0]), known)
        near = SeenHits(seen.similarities, seen.labels, seen.sizes, seen.mutual, np.minimum(seen.items, self._largest))
        reading = read(near, self.models.rule)
        match, chance, either = chances(reading.evidence, self.models)
        strange = bool(looks_strange(reading.evidence, match, self.models)[0])
        return JudgedLabel(
            int(reading.place[0]), int(reading.second[0]), float(chance[0]), float(match[0]), float(either[0]), strange
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
            return f"At least {self.target:.0%} of answers like this one are right."
        if self.models is None:
            likely = "right than wrong" if verdict == "maybe" else "wrong than right"
            return f"An answer like this one is more likely {likely}."
        if verdict == "unknown":
            return f"Of the pictures whose class is here, only {FALSE_ALARMS:.0%} look as strange as this one."
        return "" if chance is None else f"About {chance:.0%} of answers like this one are right."

    @property
    def promise(self) -> str:
        """What sure answers promise, and what more classes would."""
        most = self.classes / (self.classes + 1)
        more = ""
        if self.target < USUAL:
            least = round(USUAL / (1 - USUAL))
            bound = f"{self.classes:,} classes can promise at most {most:.0%}; {USUAL:.0%} takes at least {least}"
            more = f" ({bound})" if most < USUAL else f" ({self.reason})" if self.reason else ""
        if self.sure is None:
            return (
                f"No answer is called sure: {self.classes:,} classes like these do not promise {self.target:.0%}{more}."
            )
        return (
            f"At least {self.target:.0%} of the answers called sure are right{more}; "
            f"they cover {self.coverage:.0%} of the queries whose class is there."
        )

    def stale(self, items: int, generation: int) -> str | None:
        """Why it should be measured again, if it should."""
        if generation != self.generation:
            return "the index has a new generation of vectors since it was calibrated"
        if items > GROWTH * self.items:
            grown = f"the index has grown from {self.items:,} to {items:,} items since it was calibrated"
            lost = self.doubling * np.log2(items / max(self.items, 1))
            return grown + (f"; about {lost:.0%} fewer labels are right than then" if lost >= 0.005 else "")
        return None

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


def chances(
    rows: Float64[np.ndarray, "n evidence"], models: Models
) -> tuple[Float64[np.ndarray, " n"], Float64[np.ndarray, " n"], Float64[np.ndarray, " n"]]:
    """match, chance, and the chance that the label or the next one is right; no label is likelier than a match."""
    match = logistic.chance(_with_strangeness(rows, models.familiar), models.match)
    chance = _lined(match * logistic.chance(rows, models.given), rows, models.line)
    either = match * logistic.chance(rows, models.either)
    return match, np.minimum(chance, match), np.maximum(either, np.minimum(chance, match))


def looks_strange(
    rows: Float64[np.ndarray, "n evidence"], match: Float64[np.ndarray, " n"], models: Models
) -> Bool[np.ndarray, " n"]:
    """Which queries have nothing like them in the index."""
    low = match < models.unknown
    if models.usual is None:
        return np.asarray(low)
    slope, offset = models.usual
    return np.asarray(low | (rows[:, FIRST] < slope * rows[:, ITEMS] + offset) & (match < EVEN))


def _with_strangeness(rows: Float64[np.ndarray, "n evidence"], familiar: float) -> Float64[np.ndarray, "n more"]:
    """Also how far the best hit falls short of what is familiar: beyond that, every step counts."""
    return np.column_stack([rows, np.minimum(rows[:, BEST] + rows[:, AHEAD] - familiar, 0.0)])


def _lined(
    product: Float64[np.ndarray, " n"], rows: Float64[np.ndarray, "n evidence"], line: tuple[float, ...]
) -> Float64[np.ndarray, " n"]:
    slope, offset, *added = line  # without the last ones where small classes were not told apart
    return logistic.logistic(slope * logistic.logit(product) + offset + _small(rows)[:, : len(added)] @ added)


def _small(rows: Float64[np.ndarray, "n evidence"]) -> Float64[np.ndarray, "n 2"]:
    """Whether the label has one photo, or two or three."""
    photos = np.exp(rows[:, SIZE]).round()
    return np.column_stack([photos == 1, (photos > 1) & (photos <= FEW)]).astype(np.float64)


def fitted(trials: Trials, strangers: Trials, rule: Rule) -> tuple[Models, Float64[np.ndarray, " n"]]:
    """The models, and each trial's chance by fits without its class."""
    weights, there, right = trials.weights, trials.present, trials.right
    share = np.full(len(strangers.classes), STRANGERS * len(weights) / max(1, len(strangers.classes)))
    whole = trials.whole & there
    familiar = _quantile(trials.similarities[whole], weights[whole], FALSE_ALARMS)
    match, crossed_match = logistic.crossed(
        _with_strangeness(np.concatenate([trials.evidence, strangers.evidence]), familiar),
        np.concatenate([there, np.zeros(len(strangers.classes), bool)]),
        np.concatenate([weights, share]),
        np.concatenate([trials.classes, strangers.classes]),
    )
    crossed_match = crossed_match[: len(weights)]
    inside = trials.evidence[there], weights[there], trials.classes[there]
    given, crossed_given = logistic.crossed(inside[0], right[there], *inside[1:])
    either, _ = logistic.crossed(inside[0], (right | (trials.seconds == trials.classes))[there], *inside[1:])
    of_label = logistic.chance(trials.evidence, given)
    of_label[there] = crossed_given
    product = crossed_match * of_label
    line = _line(product, trials)
    unknown, usual = unlike_anything(trials, crossed_match)
    chance = np.minimum(_lined(product, trials.evidence, line), crossed_match)
    return Models(rule.sharpness, rule.evenness, match, given, either, line, unknown, familiar, usual), chance


def _line(product: Float64[np.ndarray, " n"], trials: Trials) -> tuple[float, ...]:
    """Through the trials and, as for a promise, one more class like them all of whose answers are wrong."""
    more = trials.weights / len(set(trials.classes.tolist()))
    return logistic.line(
        np.tile(logistic.logit(product), 2),
        np.append(trials.right, np.zeros(len(more), bool)),
        np.append(trials.weights, more),
        np.tile(_small(trials.evidence), (2, 1)),
    )


def unlike_anything(trials: Trials, match: Float64[np.ndarray, " n"]) -> tuple[float, tuple[float, float]]:
    """The match and the similarity of the first hits (a line over the logarithm of the items) that few fall below.

    Together they have few false alarms, whatever the size of the class. A larger index has something more similar for
    everybody; trials in its halves tell how much.
    """
    near, logs = trials.evidence[:, FIRST], trials.evidence[:, ITEMS]
    sizes = [trials.present & (trials.photos == size) for size in STATES[1:]]
    whole, halves = ([size & some for size in sizes] for some in (trials.whole, ~trials.whole))
    rises = [
        (np.quantile(near[all_], TAKEN) - np.quantile(near[half], TAKEN)) / (logs[all_].mean() - logs[half].mean())
        for all_, half in zip(whole, halves, strict=True)
        if all_.any() and half.any()
    ]
    slope = max(0.0, float(np.mean(rises))) if rises else 0.0
    short = near - slope * logs
    asked = [(match[size], short[size]) for size in whole if size.any()]
    for share in np.linspace(TAKEN, TAKEN / 2, STEPS):  # the half of it each is never too much
        low, far = (float(min(np.quantile(pair[which], share) for pair in asked)) for which in (0, 1))
        if max(float(((a < low) | (b < far)).mean()) for a, b in asked) <= TAKEN:
            break
    return low, (slope, far)


def _quantile(values: Float64[np.ndarray, " n"], weights: Float64[np.ndarray, " n"], share: float) -> float:
    order = np.argsort(values, kind="stable")
    reached = weights[order].cumsum() / weights.sum()
    return float(values[order][np.searchsorted(reached, share)])


def calibrate(batches: Sequence[TrialBatch], target: float | None = None, **facts: Any) -> Calibration:
    """Chances and thresholds from trials; without a `target` at the highest level they support; `facts` are kept."""
    check(target is None or 0.5 < target < 1, f"the precision to reach lies between 0.5 and 1, not {target}")
    number = len({name for batch in batches if batch.photos[0] > 0 for name in batch.classes.tolist()})
    check(
        number >= LEAST,
        f"{number} classes of two images or more are too few to calibrate with: it takes at least {LEAST}",
    )
    rule = best_rule(batches)
    every = judged(batches, rule)
    trials = every.take(every.classes >= 0)
    check(bool(trials.right.any()), "no answer was right, so no similarity can be trusted: check the labels")
    models, chance = fitted(trials, every.take(every.classes < 0), rule)
    whole = trials.take(trials.whole)
    curve = Curve.of(Judgements(whole.classes, whole.answers, whole.present, whole.weights), chance[trials.whole])
    level, sure, place, reason = _promised(curve, target)
    nearest = Curve.of(Judgements(whole.classes, whole.nearest, whole.present, whole.weights), whole.similarities)
    strange = _quantile(whole.similarities[whole.present], whole.weights[whole.present], FALSE_ALARMS)
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
    found = [(level, *lowest_reliable(curve, level, floor=level)) for level in levels]  # as likely as it promises
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
