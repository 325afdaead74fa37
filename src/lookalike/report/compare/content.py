"""Everything a comparison says, before any of it is drawn: figures, differences in pairs, cost, published rows."""

import math
from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from lookalike.errors import check
from lookalike.evaluation.statistics.seeds import Spread, spread
from lookalike.report.compare.published import Figure, of_dataset
from lookalike.runs import Collection, Method, collect

MAIN = ("recall@1", "map@r")
COSTS = {"steps": "steps", "seconds": "minutes", "memory": "memory, GB"}  # of `training` in result.json; as shown


class Gap(NamedTuple):
    """How much higher `name` is than `against`; `why` says what a missing verdict lacks."""

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


@dataclass(frozen=True)
class Row:
    """One method: its figures over seeds, and what it cost per run."""

    name: str
    seeds: tuple[int, ...]
    optimistic: bool
    metrics: dict[str, Spread]
    cost: dict[str, float]


@dataclass(frozen=True)
class Comparison:
    collection: Collection
    metrics: tuple[str, ...]  # those with intervals and differences
    rows: tuple[Row, ...]
    gaps: tuple[Gap, ...]  # every method against the baseline
    pairs: tuple[Gap, ...]  # every two methods, by the last metric
    published: tuple[Figure, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """For other programs."""
        return {
            "title": self.collection.title, "baseline": self.collection.baseline.name, "metrics": list(self.metrics),
            "differing": self.collection.differing(),
            "rows": [
                {"name": row.name, "seeds": list(row.seeds), "optimistic": row.optimistic, "cost": row.cost,
                 "metrics": {name: each.as_json() for name, each in row.metrics.items()}}
                for row in self.rows
            ],
            "differences": [_told(gap) for gap in self.gaps], "pairs": [_told(gap) for gap in self.pairs],
            "published": [figure.as_json() for figure in self.published],
        }  # fmt: skip


def compare(
    paths: Sequence[Path | str],
    metrics: Sequence[str] = (),
    baseline: str | None = None,
    dataset: str | None = None,
) -> Comparison:
    """The runs in some folders, or a study's, against each other; `dataset` places published figures beside them."""
    collection = collect(paths, baseline)
    methods, base = collection.methods, collection.baseline
    chosen = _metrics(methods, metrics)
    gaps = [_gap(method, base, metric) for metric in chosen for method in methods if method is not base]
    pairs = [_gap(one, other, chosen[-1]) for other, one in combinations(methods, 2)]
    return Comparison(
        collection, chosen, tuple(_row(method, {*chosen, *MAIN}) for method in methods), _there(gaps), _there(pairs),
        tuple(of_dataset(dataset)) if dataset else (),
    )  # fmt: skip


def _there(gaps: Sequence[Gap | None]) -> tuple[Gap, ...]:
    return tuple(gap for gap in gaps if gap is not None)


def _metrics(methods: Sequence[Method], wanted: Sequence[str]) -> tuple[str, ...]:
    shared = [metric for metric in _names(methods[0]) if all(metric in _names(method) for method in methods)]
    for metric in wanted:
        check(metric in shared, f"not every run has measured '{metric}'. Possible: {', '.join(shared) or 'none'}")
    usual = [metric for metric in MAIN if metric in shared] or shared[:2]
    check(bool(usual), "these runs have no metric in common: compare runs of one kind")
    return tuple(wanted) or tuple(usual)


def _names(method: Method) -> list[str]:
    return list(next(iter(method.results().values()), {}))


def _row(method: Method, wanted: Container[str]) -> Row:
    found = method.results()
    values = list(found.values())
    shared = [name for name in values[0] if name in wanted and all(name in each for each in values)]
    costs = {name: _mean([run.training.get(name) for run in method.runs]) for name in COSTS}
    known = {name: value for name, value in costs.items() if value is not None}
    return Row(method.name, tuple(found), method.optimistic, {name: spread(values, name) for name in shared}, known)


def _mean(values: Sequence[Any]) -> float | None:
    numbers = [float(value) for value in values if isinstance(value, int | float) and math.isfinite(value)]
    return sum(numbers) / len(numbers) if numbers else None


def _gap(method: Method, other: Method, metric: str) -> Gap | None:
    found = method.gap(other, metric)
    if found is None:
        return None
    why = ""
    if found.over_queries is None and found.over_seeds is None:
        why = "cannot tell: other test images, one seed"
    return Gap(method.name, other.name, metric, found, why)


def _told(gap: Gap) -> dict[str, Any]:
    told = {"name": gap.name, "against": gap.against, "metric": gap.metric, "verdict": gap.verdict}
    return told | gap.spread.as_json() | {"clear": gap.spread.clear}
