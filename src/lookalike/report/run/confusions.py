"""Which two classes are mistaken for each other most often, shown side by side."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lookalike.evaluation import Result
from lookalike.evaluation.result import Confusion
from lookalike.report.markup import Html, element
from lookalike.report.run.record import UnseenImages
from lookalike.report.run.tiles import Tile, file_names, tile

PAIRS, PICTURES = 8, 4


@dataclass(frozen=True)
class ConfusedPair:
    """`forth` queries of class `one` have their nearest neighbour in class `other`, `back` the other way."""

    one: str
    other: str
    forth: int
    back: int
    of_one: int
    of_other: int
    one_rows: list[int]
    other_rows: list[int]
    one_paths: list[str]
    other_paths: list[str]

    def sides(self) -> list[list[Tile]]:
        """The pictures of both classes."""
        one, other = (
            [Tile(row, name, "plain", f"an image of class {name}", path) for row, path in zip(rows, paths, strict=True)]
            for name, rows, paths in (
                (self.one, self.one_rows, self.one_paths),
                (self.other, self.other_rows, self.other_paths),
            )
        )
        return [one, other]

    def tiles(self) -> list[Tile]:
        one, other = self.sides()
        return [*one, *(shown._replace(gap=not place) for place, shown in enumerate(other))]

    def numbers(self) -> dict[str, Any]:
        return dict(self.__dict__)


def every(sample: Result) -> list[Confusion]:
    """All confusions of a result, the most frequent first."""
    return sample.confused(max(1, sample.facts["queries"]))


def select(test: UnseenImages, sample: Result, confusions: list[Confusion]) -> list[ConfusedPair]:
    """Both directions of a pair together, the pairs with the most confusions first."""
    directed = {(str(truth), str(other)): number for truth, other, number in confusions}
    totals: dict[tuple[str, str], int] = {}
    for (truth, other), number in directed.items():
        pair = min((truth, other), (other, truth))
        totals[pair] = totals.get(pair, 0) + number
    measured = zip(sample.labels, sample.queries_of("recall@1"), strict=True)
    queries = Counter(str(label) for label, value in measured if not np.isnan(value))
    rows: dict[str, list[int]] = {}
    for row, label in enumerate(test.all_labels):
        rows.setdefault(label, []).append(row)
    pairs = []
    for pair in sorted(totals, key=lambda pair: (-totals[pair], pair))[:PAIRS]:
        one, other = sorted(pair, key=lambda name: -directed.get((name, pair[pair[0] == name]), 0))
        one_rows, other_rows = rows[one][:PICTURES], rows[other][:PICTURES]
        pairs.append(
            ConfusedPair(
                one,
                other,
                directed.get((one, other), 0),
                directed.get((other, one), 0),
                queries[one],
                queries[other],
                one_rows,
                other_rows,
                [test.path(row) for row in one_rows],
                [test.path(row) for row in other_rows],
            )
        )
    return pairs


def draw(pairs: list[ConfusedPair], addresses: Mapping[int, str]) -> Html:
    return element("div", *(_pair(pair, addresses) for pair in pairs), class_="pairs")


def _pair(pair: ConfusedPair, addresses: Mapping[int, str]) -> Html:
    sides = [
        element(
            "div",
            element("strong", side[0].label),
            element("div", *(tile(shown, addresses) for shown in side), class_="answers"),
            class_="side",
        )
        for side in pair.sides()
    ]
    words = f"{pair.forth} of {pair.of_one} queries of {pair.one} are nearest to {pair.other}"
    back = f"; {pair.back} of {pair.of_other} the other way" if pair.back else "; none the other way"
    return element("div", *sides, element("div", words + back, file_names(pair.tiles()), class_="words"), class_="pair")
