"""Several seeds of one method: mean, standard deviation, and two intervals that answer two questions.

`over_seeds` (Student's t over the seeds' values): how much would another training change the figure? `over_queries`
(bootstrap over queries, each averaged over the seeds first): how much would other test images? Two methods with the
same seeds are compared in pairs, seed by seed and query by query, which varies far less than their averages.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lookalike.errors import check
from lookalike.evaluation.engine.ranks import Values
from lookalike.evaluation.result import Result
from lookalike.evaluation.statistics import bootstrap

Interval = tuple[float, float]
# 97.5% quantiles of Student's t for 1 … 15 and for 16 … 30 degrees of freedom
_FEW = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
_MORE = (2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042)
T = (*_FEW, *_MORE)


@dataclass(frozen=True)
class Spread:
    """A figure over seeds. One seed has no deviation, a metric without values per query no interval over queries.

    mean: over the seeds.
    std: standard deviation over the seeds.
    over_seeds: 95% interval for another training.
    over_queries: 95% interval for other test images.
    seeds: how many.
    """

    mean: float
    std: float | None
    over_seeds: Interval | None
    over_queries: Interval | None
    seeds: int

    def as_json(self) -> dict[str, Any]:
        """What there is, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @property
    def clear(self) -> bool:
        """Whether every interval there is leaves out 0: for differences."""
        spans = [span for span in (self.over_seeds, self.over_queries) if span is not None]
        return bool(spans) and (all(low > 0 for low, _ in spans) or all(high < 0 for _, high in spans))


def quantile(freedom: int) -> float:
    """97.5% of Student's t.

    >>> quantile(2), round(quantile(60), 2)
    (4.303, 2.0)
    """
    return T[freedom - 1] if freedom <= len(T) else 1.96 + 2.4 / freedom


def spread(results: Sequence[Result], metric: str) -> Spread:
    """One method's `metric` over its `results`, one per seed.

    >>> runs = [Result({"map": value}, {"map": np.full(4, value)}, list("aabb"), {}) for value in (0.5, 0.6, 0.7)]
    >>> over = spread(runs, "map")
    >>> round(over.mean, 3), round(over.std, 3), [round(end, 3) for end in over.over_seeds]
    (0.6, 0.1, [0.352, 0.848])
    """
    check(len(results) > 0, "there are no results to average")
    complete = all(metric in result.per_query for result in results)
    vectors = [result.per_query[metric] for result in results] if complete else []
    return spread_of([result[metric] for result in results], vectors, _same_queries(results))


def difference(results: Sequence[Result], baseline: Sequence[Result], metric: str) -> Spread:
    """How much higher the `metric` of some `results` is than the `baseline`'s, in pairs of equal seed and query."""
    check(
        len(results) == len(baseline),
        f"{len(results)} seeds against {len(baseline)} of the baseline: a paired comparison needs the same seeds",
    )
    pairs = list(zip(results, baseline, strict=True))
    paired = all(
        metric in one.per_query and metric in other.per_query and one.labels == other.labels for one, other in pairs
    )
    vectors = [one.per_query[metric] - other.per_query[metric] for one, other in pairs] if paired else []
    return spread_of([one[metric] - other[metric] for one, other in pairs], vectors, _same_queries(results))


def difference_by_seed(
    results: Mapping[int, Result], baseline: Mapping[int, Result], metric: str, in_order: bool = False
) -> Spread | None:
    """The difference of `metric` between `results` and `baseline`, by seed, over the seeds that both have; with
    `in_order`, methods without a common seed are paired as they come. None: there is no pair."""
    mine, theirs = ({seed: one for seed, one in side.items() if metric in one} for side in (results, baseline))
    pairs = [(mine[seed], theirs[seed]) for seed in sorted(mine.keys() & theirs.keys())]
    if in_order and not pairs:
        pairs = list(zip(mine.values(), theirs.values(), strict=False))
    return difference([one for one, _ in pairs], [base for _, base in pairs], metric) if pairs else None


def averaged(results: Sequence[Result]) -> Result:
    """The mean of the `results` of several models on the same queries, figure by figure and query by query."""
    first = results[0]
    check(_same_queries(results), "models were measured on different queries, so their mean is meaningless")
    values = {name: float(np.mean([result[name] for result in results])) for name in first}
    per_query = {name: np.mean([result.per_query[name] for result in results], axis=0) for name in first.per_query}
    return Result(values, per_query, first.labels, first.facts, first.categories, sets=first.sets)


def spread_of(values: Sequence[float], vectors: Sequence[Values] = (), same_queries: bool = True) -> Spread:
    """The spread of one value per seed, with the values of its queries where there are any."""
    count, mean = len(values), float(np.mean(values))
    std = float(np.std(values, ddof=1)) if count > 1 else None
    span = None
    if std is not None:
        half = quantile(count - 1) * std / math.sqrt(count)
        span = (mean - half, mean + half)
    over_queries = None
    if vectors:
        # test images that differ from seed to seed are further queries; the same ones are not
        joined = np.mean(vectors, axis=0) if same_queries else np.concatenate(vectors)
        over_queries = None if np.isnan(joined).all() else bootstrap.interval(joined)
    return Spread(mean, std, span, over_queries, count)


def _same_queries(results: Sequence[Result]) -> bool:
    return all(result.labels == results[0].labels for result in results)
