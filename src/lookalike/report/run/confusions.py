"""Which two classes are taken for each other most often, shown side by side."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lookalike.evaluation import Result
from lookalike.evaluation.result import Confusion
from lookalike.report.page.markup import Html, element
from lookalike.report.run.reading import Unseen
from lookalike.report.run.strips import tile
from lookalike.report.run.tiles import Tile

PAIRS, PICTURES = 8, 4


@dataclass(frozen=True)
class Confused:
    """`forth` queries of class `one` have their nearest neighbour in class `other`, `back` the other way."""

    one: str
    other: str
    forth: int
    back: int
    of_one: int
    of_other: int
    one_rows: list[int]
    other_rows: list[int]

    def rows(self) -> list[int]:
        return self.one_rows + self.other_rows

    def tiles(self) -> list[Tile]:
        others = [Tile(row, self.other, "plain", gap=not k) for k, row in enumerate(self.other_rows)]
        return [*(Tile(row, self.one, "plain") for row in self.one_rows), *others]

    def numbers(self) -> dict[str, Any]:
        return dict(self.__dict__)


def every(sample: Result) -> list[Confusion]:
    """All confusions of a result, the most frequent first."""
    return sample.confused(max(1, sample.facts["queries"]))


def find(test: Unseen, sample: Result, confusions: list[Confusion]) -> list[Confused]:
    """Both directions of a pair together, the pairs with the most confusions first."""
    directed = {(str(truth), str(taken)): number for truth, taken, number in confusions}
    totals: dict[tuple[str, str], int] = {}
    for (truth, taken), number in directed.items():
        pair = min((truth, taken), (taken, truth))
        totals[pair] = totals.get(pair, 0) + number
    queries = {str(label): share.queries for label, share in sample.by_class("recall@1").items()}
    rows = _rows_by_class(test)
    found = []
    for pair in sorted(totals, key=lambda pair: (-totals[pair], pair))[:PAIRS]:
        one, other = sorted(pair, key=lambda name: -directed.get((name, pair[pair[0] == name]), 0))
        found.append(
            Confused(
                one, other, directed.get((one, other), 0), directed.get((other, one), 0),
                queries.get(one, 0), queries.get(other, 0), rows[one][:PICTURES], rows[other][:PICTURES],
            )
        )  # fmt: skip
    return found


def _rows_by_class(test: Unseen) -> dict[str, list[int]]:
    rows: dict[str, list[int]] = {}
    for row, label in enumerate(test.all_labels):
        rows.setdefault(label, []).append(row)
    return rows


def draw(confused: list[Confused], pictures: Mapping[int, str]) -> Html:
    return element("div", *(_pair(pair, pictures) for pair in confused), class_="pairs")


def _pair(pair: Confused, pictures: Mapping[int, str]) -> Html:
    sides = []
    for name, rows in ((pair.one, pair.one_rows), (pair.other, pair.other_rows)):
        shown = [tile(row, name, f"an image of class {name}", pictures, "plain") for row in rows]
        sides.append(element("div", element("strong", name), element("div", *shown, class_="answers"), class_="side"))
    words = f"{pair.forth} of {pair.of_one} queries of {pair.one} taken for {pair.other}"
    back = f"; {pair.back} of {pair.of_other} the other way" if pair.back else "; none the other way"
    return element("div", *sides, element("p", words + back), class_="pair")
