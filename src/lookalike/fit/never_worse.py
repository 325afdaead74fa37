"""Nobody may get less than they had: what departs from it must be better beyond luck, in pairs over classes."""

from lookalike.evaluation import Result, compare

CONFIDENCE, CAREFUL = 0.8, 0.95  # one-sided; the latter where few classes judge
PAYS = 0.005  # map@r that more dimensions must be able to add, and recall@1 that nothing may give away
TELLING = 10  # classes, below which only large differences are told


def surely_better(one: Result, other: Result) -> bool:
    """Whether `one` has a higher map@r with 80% confidence (95% with few classes) and keeps recall@1."""
    confidence = CONFIDENCE if len(set(one.labels)) >= TELLING else CAREFUL
    return _lower(one, other, 2 * confidence - 1) > 0 and _keeps_recall(one, other)


def as_good(one: Result, other: Result) -> bool:
    """Whether `one` gives away nothing that matters."""
    return _lower(one, other, 0.95) > -PAYS and _keeps_recall(one, other)


def _keeps_recall(one: Result, other: Result) -> bool:
    return one["recall@1"] > other["recall@1"] - PAYS


def _lower(one: Result, other: Result, level: float) -> float:
    """The lower end of the paired difference over classes."""
    pair = {"other": other, "one": one}
    return compare(pair, ["map@r"], level=level, over="classes").differences[1].low
