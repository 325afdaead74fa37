"""Bootstrap intervals of a mean (Efron 1979): over queries, or over classes, whose queries are not independent."""

from collections.abc import Hashable, Sequence
from typing import Literal, get_args

import numpy as np

from lookalike.errors import check, unknown
from lookalike.evaluation.engine.ranks import Values
from lookalike.labels import encode

Unit = Literal["queries", "classes"]
DRAWS_AT_ONCE = 2**22


def interval(
    values: Values, classes: Sequence[Hashable] | None = None, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> tuple[float, float]:
    """The percentile interval of the mean of `values` without NaN; with `classes`, whole classes are drawn.

    >>> interval(np.array([1.0, 1.0, np.nan]))
    (1.0, 1.0)
    """
    check(0 < level < 1, f"level must lie between 0 and 1, such as 0.95, not {level}")
    check(resamples > 0, f"resamples must be at least 1, not {resamples}")
    counted = ~np.isnan(values)
    check(bool(counted.any()), "there are no values to draw from")
    sums, weights = values[counted], np.ones(int(counted.sum()))
    if classes is not None:
        (codes,), _ = encode(classes)
        _, compact = np.unique(codes[counted], return_inverse=True)
        sums, weights = np.bincount(compact, weights=sums).astype(np.float64), np.bincount(compact).astype(np.float64)
    means = resampled_means(sums, weights, resamples, np.random.default_rng(seed))
    low, high = np.quantile(means, ((1 - level) / 2, (1 + level) / 2))
    return float(low), float(high)


def check_unit(over: str) -> None:
    if over not in get_args(Unit):
        raise unknown("unit to draw", over, get_args(Unit))


def resampled_means(sums: Values, weights: Values, resamples: int, generator: np.random.Generator) -> Values:
    """Σ sums / Σ weights over units drawn with replacement, `resamples` times."""
    means, units = np.empty(resamples), len(sums)
    step = max(1, DRAWS_AT_ONCE // units)
    for start in range(0, resamples, step):
        drawn = generator.integers(0, units, (min(step, resamples - start), units))
        means[start : start + step] = sums[drawn].sum(1) / weights[drawn].sum(1)
    return means
