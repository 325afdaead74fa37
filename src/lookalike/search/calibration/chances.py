"""The chances of an answer, and whether anything in the index is like the query: fitted to trials, and read again.

`match` is the chance that the class of a query is in the index, `chance` that its label is right: logistic regressions
on what the first hits say (evidence.py), fitted to trials in which classes are absent, have one photo, three, or all
(trials.py). A label can be right only where its class is there: chance = match · P(right | there), calibrated again.
Nothing is like a query whose match is lower, whose first hits are less similar (Sun, Ming, Zhu, Li, ICML 2022), or
which is more like a picture of nothing (foreign.py), than nearly all trials whose class is there.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Float64

from lookalike.search.calibration import logistic
from lookalike.search.calibration.evidence import AHEAD, BEST, FIRST, ITEMS, SIZE, Rule
from lookalike.search.calibration.foreign import Familiar, familiarity
from lookalike.search.calibration.trials import STATES, Trials

FALSE_ALARMS = 0.05  # of the queries whose class is there, at most so many are called unknown
FEW = 3  # photos of a class
TAKEN = 0.04  # of the trials, so that other classes keep to it
EVEN = 0.5  # a chance: what has a likely label is called unknown for its match only
STEPS = 9  # shares that are tried for all thresholds
STRANGERS = 0.1  # their weight beside the trials, where `match` is fitted
SUREST = 99  # percent that people are shown: a hundred trials of a class say nothing about more


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
    direction: Sequence[float] = ()  # weights of the coordinates of a query, and a constant: how familiar it is
    foreign: float = 0.0  # below this it is foreign to the index

    @property
    def rule(self) -> Rule:
        return Rule(self.sharpness, self.evenness)

    @staticmethod
    def from_json(content: dict[str, Any]) -> "Models":
        lists = {name: tuple(content.get(name, ())) for name in ("match", "given", "either", "line", "direction")}
        usual = content.get("usual")
        return Models(**{**content, **lists, "usual": None if usual is None else tuple(usual)})


def chances(
    rows: Float64[np.ndarray, "n evidence"], models: Models
) -> tuple[Float64[np.ndarray, " n"], Float64[np.ndarray, " n"], Float64[np.ndarray, " n"]]:
    """match, chance, and that the label or the next one is right, where the next one counts at most like the first."""
    match = logistic.chance(_with_strangeness(rows, models.familiar), models.match)
    chance = np.minimum(match, _lined(match * logistic.chance(rows, models.given), rows, models.line))
    either = match * logistic.chance(rows, models.either)
    return match, chance, np.clip(either, chance, np.minimum(2 * chance, match))


def looks_strange(
    rows: Float64[np.ndarray, "n evidence"],
    match: Float64[np.ndarray, " n"],
    chance: Float64[np.ndarray, " n"],
    models: Models,
    queries: Float[np.ndarray, "n d"],
) -> Bool[np.ndarray, " n"]:
    """Which queries have nothing like them in the index; `queries`: their vectors, without columns if not known."""
    low = match < models.unknown
    far = np.zeros(len(rows), bool)
    if models.usual is not None:
        slope, offset = models.usual
        far |= rows[:, FIRST] < slope * rows[:, ITEMS] + offset
    if len(models.direction) == queries.shape[1] + 1:
        far |= familiarity(queries, models.direction) < models.foreign
    return _alarmed(np.stack([low, far]), chance)


def in_percent(chance: float) -> str:
    """A chance as people see it, here and on the page; programs get it as it is.

    >>> in_percent(0.625), in_percent(0.9999)
    ('63%', '99%')
    """
    return f"{min(SUREST, math.floor(100 * chance + 0.5))}%"


def _alarmed(below: Bool[np.ndarray, "rules n"], chance: Float64[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
    """The first rule is about the match; the others count where no label is likely."""
    return np.asarray(below[0] | below[1:].any(0) & (chance < EVEN))


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


def fitted(
    trials: Trials, strangers: Trials, rule: Rule, familiar: Familiar | None
) -> tuple[Models, Float64[np.ndarray, " n"]]:
    """The models, and each trial's chance by fits without its class."""
    weights, there, right = trials.weights, trials.present, trials.right
    share = np.full(len(strangers.classes), STRANGERS * len(weights) / max(1, len(strangers.classes)))
    whole = trials.whole & there
    similar = quantile(trials.similarities[whole], weights[whole], FALSE_ALARMS)
    match, crossed_match = logistic.crossed(
        _with_strangeness(np.concatenate([trials.evidence, strangers.evidence]), similar),
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
    chance = np.minimum(_lined(product, trials.evidence, line), crossed_match)
    seen = None if familiar is None else familiar.queries[trials.queries]
    unknown, usual, foreign = unlike_anything(trials, crossed_match, chance, seen)
    models = Models(rule.sharpness, rule.evenness, match, given, either, line, unknown, similar, usual)
    return models if familiar is None else replace(models, direction=familiar.weights, foreign=foreign), chance


def _line(product: Float64[np.ndarray, " n"], trials: Trials) -> tuple[float, ...]:
    """Through the trials and, as for a promise, one more class like them all of whose answers are wrong."""
    more = trials.weights / len(set(trials.classes.tolist()))
    return logistic.line(
        np.tile(logistic.logit(product), 2),
        np.append(trials.right, np.zeros(len(more), bool)),
        np.append(trials.weights, more),
        np.tile(_small(trials.evidence), (2, 1)),
    )


def unlike_anything(
    trials: Trials,
    match: Float64[np.ndarray, " n"],
    chance: Float64[np.ndarray, " n"],
    familiar: Float64[np.ndarray, " n"] | None,
) -> tuple[float, tuple[float, float], float]:
    """The match, the similarity of the first hits (a line over the logarithm of the items) and the familiarity of the
    query that few fall below.

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
    scores = np.stack([match, near - slope * logs, *([] if familiar is None else [familiar])])
    by_size = [(scores[:, size], chance[size]) for size in whole if size.any()]
    for share in np.linspace(TAKEN, TAKEN / len(scores), STEPS):  # the last is never too much
        limits = np.min([np.quantile(some, share, axis=1) for some, _ in by_size], axis=0)
        if max(float(_alarmed(some < limits[:, None], likely).mean()) for some, likely in by_size) <= TAKEN:
            break
    low, offset, *foreign = limits.tolist()
    return low, (slope, offset), foreign[0] if foreign else 0.0


def quantile(values: Float64[np.ndarray, " n"], weights: Float64[np.ndarray, " n"], share: float) -> float:
    order = np.argsort(values, kind="stable")
    reached = weights[order].cumsum() / weights.sum()
    return float(values[order][np.searchsorted(reached, share)])
