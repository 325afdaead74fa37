"""Everything a comparison says, before any of it is drawn: figures, paired differences, cost, published rows."""

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from lookalike.errors import check
from lookalike.evaluation.statistics.seeds import Spread, spread
from lookalike.report.compare.methods import Collection, Method, collect
from lookalike.report.compare.published import PublishedRow, of_dataset

MAIN = ("recall@1", "map@r")
COSTS = {"steps": "steps", "seconds": "minutes", "memory": "memory (GB)"}  # of `training` in result.json; as shown


class MethodGap(NamedTuple):
    """How much higher `name` is than `against`; `why` says why there is no verdict, if there is none."""

    name: str
    against: str
    metric: str
    spread: Spread
    why: str = ""

    @property
    def verdict(self) -> str:
        if self.why:
            return self.why
        if not self.spread.clear:
            return "within the noise"
        return "better" if self.spread.mean > 0 else "worse"

    def as_json(self) -> dict[str, Any]:
        names = {"name": self.name, "against": self.against, "metric": self.metric, "verdict": self.verdict}
        return names | self.spread.as_json() | {"clear": self.spread.clear}


@dataclass(frozen=True)
class MethodRow:
    """One method: its figures over seeds, and what it cost per run."""

    name: str
    seeds: tuple[int, ...]
    optimistic: bool
    metrics: dict[str, Spread]
    cost: dict[str, float]


@dataclass(frozen=True)
class MethodComparison:
    """All that the page and the table show.

    collection: the methods, read from their folders.
    metrics: those with intervals and differences.
    rows: each method's figures over seeds, and its cost.
    gaps: every method against the baseline.
    pairs: every two methods, by the last metric.
    published: rows of papers.
    """

    collection: Collection
    metrics: tuple[str, ...]
    rows: tuple[MethodRow, ...]
    gaps: tuple[MethodGap, ...]
    pairs: tuple[MethodGap, ...]
    published: tuple[PublishedRow, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """For other programs."""
        return {
            "title": self.collection.title,
            "baseline": self.collection.baseline.name,
            "metrics": list(self.metrics),
            "differing": self.collection.differing(),
            "rows": [
                {
                    "name": row.name,
                    "seeds": list(row.seeds),
                    "optimistic": row.optimistic,
                    "cost": row.cost,
                    "metrics": {name: each.as_json() for name, each in row.metrics.items()},
                }
                for row in self.rows
            ],
            "differences": [gap.as_json() for gap in self.gaps],
            "pairs": [gap.as_json() for gap in self.pairs],
            "published": [row.as_json() for row in self.published],
        }


def compare(
    paths: Sequence[Path | str], metrics: Sequence[str] = (), baseline: str | None = None, dataset: str | None = None
) -> MethodComparison:
    """The runs in the folders `paths`, or the rows of a study, against each other and beside published figures.

    `metrics`: empty: recall@1 and map@r, if all have them. `baseline`: the name of a method; None: the study's, or the
    first. `dataset`: the one whose published figures are shown, such as "cub200"; None: no such figures.
    """
    collection = collect(paths, baseline)
    methods, base = collection.methods, collection.baseline
    names = _metrics(methods, metrics)
    gaps = [_gap(method, base, metric) for metric in names for method in methods if method is not base]
    pairs = [_gap(one, other, names[-1]) for other, one in combinations(methods, 2)]
    return MethodComparison(
        collection=collection,
        metrics=names,
        rows=tuple(_row(method, {*names, *MAIN}) for method in methods),
        gaps=tuple(gap for gap in gaps if gap is not None),
        pairs=tuple(gap for gap in pairs if gap is not None),
        published=tuple(of_dataset(dataset)) if dataset else (),
    )


def _metrics(methods: Sequence[Method], requested: Sequence[str]) -> tuple[str, ...]:
    shared = [metric for metric in _names(methods[0]) if all(metric in _names(method) for method in methods)]
    for metric in requested:
        check(metric in shared, f"not every run has measured '{metric}'. Possible: {', '.join(shared) or 'none'}")
    usual = [metric for metric in MAIN if metric in shared] or shared[:2]
    check(bool(usual), "these runs have no metric in common: compare runs that measured the same")
    return tuple(requested) or tuple(usual)


def _names(method: Method) -> list[str]:
    return list(next(iter(method.results().values()), {}))


def _row(method: Method, metrics: Container[str]) -> MethodRow:
    by_seed = method.results()
    results = list(by_seed.values())
    shared = [name for name in results[0] if name in metrics and all(name in result for result in results)]
    costs = {name: _mean([run.training.get(name) for run in method.runs]) for name in COSTS}
    return MethodRow(
        name=method.name,
        seeds=tuple(by_seed),
        optimistic=method.optimistic,
        metrics={name: spread(results, name) for name in shared},
        cost={name: value for name, value in costs.items() if value is not None},
    )


def _mean(values: Sequence[Any]) -> float | None:
    numbers = [float(value) for value in values if isinstance(value, int | float) and math.isfinite(value)]
    return sum(numbers) / len(numbers) if numbers else None


def _gap(method: Method, other: Method, metric: str) -> MethodGap | None:
    spread_of_gap = method.gap(other, metric)
    if spread_of_gap is None:
        return None
    unpaired = spread_of_gap.over_queries is None and spread_of_gap.over_seeds is None
    why = "cannot tell: different test images, one seed" if unpaired else ""
    return MethodGap(method.name, other.name, metric, spread_of_gap, why)
