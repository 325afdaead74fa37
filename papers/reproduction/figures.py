"""The figures of a kept study, and how far two of its rows are apart, run by run."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lookalike.evaluation.statistics.seeds import Interval, Spread, spread_of
from lookalike.evaluation.table import NOT_SHARES

RESULTS = Path(__file__).with_name("results")
Run = tuple[int, int]  # seed and fold


@dataclass(frozen=True)
class Kept:
    """A study.json of the repository; a study that has not been run has no rows."""

    name: str
    content: dict[str, Any]

    @staticmethod
    def read(name: str, folder: Path = RESULTS) -> "Kept":
        file = folder / f"{name}.json"
        return Kept(name, json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {"rows": []})

    @property
    def complete(self) -> bool:
        return bool(self.content.get("done", 0) == self.content.get("cells", 0))

    @property
    def rows(self) -> list[str]:
        """The rows that have at least one run."""
        return [row["name"] for row in self.content["rows"] if row["runs"]]

    def runs(self, row: str) -> dict[Run, dict[str, Any]]:
        for each in self.content["rows"]:
            if each["name"] == row:
                return {(run["seed"], run.get("fold", 0)): run for run in each["runs"]}
        return {}

    def values(self, row: str, metric: str) -> dict[Run, float]:
        return {key: run["metrics"][metric] for key, run in self.runs(row).items() if metric in run["metrics"]}

    def unmoved(self, row: str) -> bool:
        """Whether no run of a row ever validated better than before its first step."""
        runs = self.runs(row).values()
        return bool(runs) and all(run["best_step"] == 0 for run in runs)

    def renewed(self, row: str) -> int | None:
        """In how many runs CCP took new proxies before the weights that were kept; None for a row without CCP."""
        runs = self.runs(row).values()
        if not any("instances" in run for run in runs):
            return None
        return sum(any(0 < each["step"] <= run["best_step"] for each in run.get("instances", [])) for run in runs)

    def mean(self, row: str, metric: str) -> float | None:
        values = self.values(row, metric).values()
        return sum(values) / len(values) if values else None

    def over_queries(self, row: str, against: str, metric: str) -> Interval | None:
        """The interval over queries, where the study compared these two rows, in whichever order."""
        own = self._compared(row, against, metric)
        if own is not None:
            return own
        other = self._compared(against, row, metric)
        return None if other is None else (-other[1], -other[0])

    def _compared(self, row: str, against: str, metric: str) -> Interval | None:
        pairs = [pair for pair in self.content.get("compare", []) if (pair["row"], pair["against"]) == (row, against)]
        if against == self.content.get("baseline"):
            pairs += [each for each in self.content["rows"] if each["name"] == row]
        spans = [pair.get("differences", {}).get(metric, {}).get("over_queries") for pair in pairs]
        return next(((span[0], span[1]) for span in spans if span), None)

    def gap(self, row: str, against: str, metric: str) -> Spread | None:
        """How much higher a row is than another, over the runs that both have."""
        mine, theirs = self.values(row, metric), self.values(against, metric)
        gaps = [mine[key] - theirs[key] for key in sorted(mine.keys() & theirs.keys())]
        if not gaps:
            return None
        over = spread_of(gaps)
        return Spread(over.mean, over.std, over.over_seeds, self.over_queries(row, against, metric), over.seeds)


def pearson(one: Sequence[float], other: Sequence[float]) -> float:
    """Correlation; 0 where one of the two does not vary.

    >>> round(pearson([1, 2, 3], [2, 4, 6.5]), 2)
    1.0
    """
    x, y = ([value - sum(values) / len(values) for value in values] for values in (one, other))
    norm = math.sqrt(sum(value * value for value in x) * sum(value * value for value in y))
    return sum(a * b for a, b in zip(x, y, strict=True)) / norm if norm else 0.0


def fisher(related: float) -> float:
    """Fisher's transformation of a correlation, in which intervals are taken; 1 is taken as 0.999.

    >>> round(fisher(0.5), 3), round(fisher(-1.0), 1)
    (0.549, -3.8)
    """
    return math.atanh(max(-0.999, min(0.999, related)))


def correlation(one: Sequence[float], other: Sequence[float]) -> tuple[float, float, float]:
    """Pearson's r and the ends of Fisher's 95% interval, of more than three pairs.

    >>> [round(value, 2) for value in correlation([1, 2, 3, 4, 5], [2, 1, 4, 3, 5])]
    [0.8, -0.28, 0.99]
    """
    related = pearson(one, other)
    half = 1.96 / math.sqrt(len(one) - 3)
    low, high = (math.tanh(fisher(related) + end) for end in (-half, half))
    return related, low, high


def shown(value: float, metric: str, sign: str = "") -> str:
    """A figure as the tables have it: shares in percent.

    >>> shown(0.2134, "map@r"), shown(0.5, "train:rho")
    ('21.34', '0.500')
    """
    if metric.removeprefix("train:") in NOT_SHARES:
        return f"{value:{sign}.3f}".replace("-", "−")
    return f"{100 * value:{sign}.2f}".replace("-", "−")


def span(interval: Interval | None, metric: str) -> str:
    return "" if interval is None else f"[{shown(interval[0], metric, '+')}, {shown(interval[1], metric, '+')}]"
