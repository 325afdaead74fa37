"""Two results on the same queries: differences query by query, which vary far less than the two averages."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from lookalike.errors import check
from lookalike.evaluation.result import Result
from lookalike.evaluation.statistics import bootstrap
from lookalike.evaluation.table import aligned


class Difference(NamedTuple):
    """`value` of a metric, and how much it is above the first result's (mean and interval of paired differences)."""

    metric: str
    name: str
    value: float
    difference: float
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Whether the interval of the difference leaves out 0."""
        return self.low > 0 or self.high < 0


class PairedComparison(NamedTuple):
    """Several results against the one called `baseline`, metric by metric."""

    baseline: str
    differences: list[Difference]

    def __str__(self) -> str:
        rows = [["metric", "result", "value", f"− {self.baseline}", "interval", ""]]
        for part in self.differences:
            span = f"[{part.low:+.4f}, {part.high:+.4f}]" if part.name != self.baseline else ""
            gain = f"{part.difference:+.4f}" if part.name != self.baseline else ""
            rows.append([part.metric, part.name, f"{part.value:.4f}", gain, span, "*" if part.clear else ""])
        return "\n".join(aligned(rows))


def compare(
    results: Mapping[str, Result],
    metrics: Iterable[str] = ("recall@1", "r_precision", "map@r"),
    *,
    level: float = 0.95,
    over: bootstrap.Unit = "queries",
    resamples: int = 1000,
    seed: int = 0,
) -> PairedComparison:
    """Every one of `results` against the first, in these `metrics`, on the queries both count.

    Intervals have the confidence `level`: "queries" or "classes" (`over`) are drawn `resamples` times, from `seed`.

    >>> good = Result({"map": 1.0}, {"map": np.ones(4)}, [1, 1, 2, 2], {})
    >>> poor = Result({"map": 0.5}, {"map": np.full(4, 0.5)}, [1, 1, 2, 2], {})
    >>> compare({"old": poor, "new": good}, ["map"]).differences[1]
    Difference(metric='map', name='new', value=1.0, difference=0.5, low=0.5, high=0.5)
    """
    check(len(results) > 1, f"give at least two results to compare, not {len(results)}")
    bootstrap.check_unit(over)
    (first, baseline), *_ = results.items()
    classes = baseline.labels if over == "classes" else None
    differences = []
    for metric in metrics:
        for name, result in results.items():
            check(
                result.labels == baseline.labels,
                f"'{name}' and '{first}' were measured on different queries: a paired comparison needs the same",
            )
            gap = result.queries_of(metric) - baseline.queries_of(metric)
            low, high = bootstrap.interval(gap, classes, level, resamples, seed)
            mean = float(gap[~np.isnan(gap)].mean())
            differences.append(Difference(metric, name, result[metric], mean, low, high))
    return PairedComparison(first, differences)
