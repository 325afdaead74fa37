"""The result of an evaluation: a mapping of metric names to numbers, with the value of every query behind each."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from lookalike.errors import UserError, check, unknown
from lookalike.evaluation import serial, table
from lookalike.evaluation.engine.ranks import Values
from lookalike.evaluation.inputs import Codes
from lookalike.evaluation.statistics import bootstrap
from lookalike.labels import encode

WIDTH = 1e-12


class Share(NamedTuple):
    """The mean of a metric over the queries of a class or category."""

    value: float
    queries: int


class Confusion(NamedTuple):
    """`queries` images of class `truth` whose nearest neighbour is of class `taken_for`."""

    truth: Hashable
    taken_for: Hashable
    queries: int


@dataclass(frozen=True)
class Result(Mapping[str, float]):
    """Metrics by name, as a mapping to floats.

    values_by_name: the figures.
    per_query: the value of every query by metric, NaN for those without any relevant item, which no average counts.
    labels: the class of every query; of one with several labels their names in one word, such as `red|round`.
    facts: sizes, excluded and tied queries, settings.
    categories: the super-category of every query, if given.
    curves: the points of every curve that was named.
    nearest_wrong: finds the class of the nearest item of another class, for some queries.
    sets: the labels of every query, where queries have several, or none.

    >>> result = Result({"recall@1": 0.5}, {"recall@1": np.array([1.0, 0.0])}, ["ant", "bee"], {"queries": 2})
    >>> result["recall@1"], result.by_class("recall@1")["bee"]
    (0.5, Share(value=0.0, queries=1))
    """

    values_by_name: dict[str, float]
    per_query: dict[str, Values]
    labels: list[Hashable]
    facts: dict[str, Any]  # sizes, excluded and tied queries, settings
    categories: list[Hashable] | None = None
    curves: dict[str, dict[str, Values]] = field(default_factory=dict)
    nearest_wrong: Callable[[Codes], list[Hashable]] | None = field(default=None, repr=False, compare=False)
    sets: list[list[Hashable]] | None = None

    def __getitem__(self, name: str) -> float:
        if name not in self.values_by_name:
            raise KeyError(str(unknown("metric of this result", name, self.values_by_name)))
        return self.values_by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_name)

    def __len__(self) -> int:
        return len(self.values_by_name)

    def __str__(self) -> str:
        return table.of_result(self)

    @property
    def warnings(self) -> list[str]:
        """What a reader of the figures must know, a sentence each: queries that are not counted, ties."""
        sentences = []
        if self.facts.get("excluded"):
            sentences.append(f"{self.facts['excluded']:,} queries have no relevant item and are not counted")
        if self.facts.get("tied"):
            rule = self.facts["ties"]
            sentences.append(
                f"{self.facts['tied']:,} queries have ties between relevant and other items, resolved as {rule}"
            )
        return sentences

    def queries_of(self, name: str) -> Values:
        """The value of every query in the metric `name`, NaN for those without a relevant item."""
        if name not in self.per_query:
            kind = f"'{name}' has no value per query" if name in self else f"'{name}' was not measured"
            raise UserError(f"{kind}. Possible: {', '.join(self.per_query) or 'none'}")
        return self.per_query[name]

    def interval(
        self, name: str, level: float = 0.95, over: bootstrap.Unit = "queries", resamples: int = 1000, seed: int = 0
    ) -> tuple[float, float]:
        """The bootstrap interval of the metric `name` that has the confidence `level`.

        `over`: "queries" or "classes" are drawn, `resamples` times, from `seed`.
        """
        bootstrap.check_unit(over)
        classes = self.labels if over == "classes" else None
        return bootstrap.interval(self.queries_of(name), classes, level, resamples, seed)

    def by_class(self, name: str) -> dict[Hashable, Share]:
        """The metric `name` over the queries of each class; a query with several labels counts for each of them."""
        values = self.queries_of(name)
        if self.sets is None:
            return shares(values, self.labels)
        numbers = [len(own) for own in self.sets]
        return shares(np.repeat(values, numbers), [label for own in self.sets for label in own])

    def by_category(self, name: str) -> dict[Hashable, Share]:
        """The metric `name` over the queries of each super-category."""
        if self.categories is None:
            raise UserError("this result has no categories: give evaluate(..., categories=...)")
        return shares(self.queries_of(name), self.categories)

    def worst(self, name: str = "map@r", count: int = 10) -> list[tuple[int, Hashable, float]]:
        """The `count` queries with the lowest value of `name` as (row, label, value), the worst first."""
        values = self.queries_of(name)
        rows = np.argsort(values, kind="stable")[: min(count, int((~np.isnan(values)).sum()))]
        return [(int(row), self.labels[row], float(values[row])) for row in rows]

    def confused(self, count: int = 10) -> list[Confusion]:
        """The `count` class pairs most often confused: queries whose nearest neighbour is of another class."""
        check(count > 0, f"count must be at least 1, not {count}")
        if "confused" not in self.facts:
            self.facts["confused"] = self.find_confused()
        return [Confusion(*pair) for pair in self.facts["confused"][:count]]

    def find_confused(self) -> list[tuple[Hashable, Hashable, int]]:
        """All pairs (class, class taken for, queries), the most frequent first."""
        if self.nearest_wrong is None:
            raise UserError(
                "a result read from a file without confusions cannot search for them: call confused() first"
            )
        rows = np.flatnonzero(self.queries_of("recall@1") < 1 - WIDTH)
        counts: dict[tuple[Hashable, Hashable], int] = {}
        for row, wrong in zip(rows, self.nearest_wrong(rows), strict=True):
            pair = (self.labels[row], wrong)
            counts[pair] = counts.get(pair, 0) + 1
        ranked = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
        return [(truth, taken_for, number) for (truth, taken_for), number in ranked]

    def to_json(self) -> str:
        """Everything as JSON text; numbers per query are packed, exactly."""
        return serial.dump(self)

    @staticmethod
    def from_json(text: str) -> "Result":
        """A result from the `text` that `to_json` wrote."""
        return Result(**serial.load(text))


def shares(values: Values, labels: list[Hashable]) -> dict[Hashable, Share]:
    counted = ~np.isnan(values)
    (codes,), names = encode(labels)
    totals = np.bincount(codes[counted], weights=values[counted], minlength=len(names))
    numbers = np.bincount(codes[counted], minlength=len(names))
    return {names[k]: Share(float(totals[k] / numbers[k]), int(numbers[k])) for k in np.flatnonzero(numbers)}
