"""Queries and their first answers side by side: the worst, the typical and the best, hits and misses marked."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lookalike.evaluation import Result, neighbours
from lookalike.evaluation.inputs import Codes
from lookalike.labels import encode
from lookalike.report.charts.ticks import decimals
from lookalike.report.markup import Html, element, join
from lookalike.report.run.record import UnseenImages
from lookalike.report.run.tiles import Kind, Tile, file_names, tile

QUERIES, ANSWERS = 5, 10
TITLES = {
    "worst": "Worst queries: where to look for wrong labels, near-identical classes and missing variety",
    "typical": "Typical queries: what to expect from a query taken at random",
    "best": "Best queries: what the model is sure of",
}


@dataclass(frozen=True)
class AnsweredQuery:
    row: int
    label: str
    score: float
    hit: bool
    path: str


@dataclass(frozen=True)
class Strip:
    """One query with its answers, the nearest first."""

    kind: str
    row: int
    label: str
    path: str
    value: float  # map@r of this query
    answers: list[AnsweredQuery]

    def tiles(self) -> list[Tile]:
        digits = decimals(answer.score for answer in self.answers)
        tiles = [Tile(self.row, self.label, "query", f"query of class {self.label}", self.path)]
        for place, answer in enumerate(self.answers):
            kind: Kind = "hit" if answer.hit else "miss"
            score = f"{answer.score:.{digits}f}".replace("-", "−")
            words = f"{kind}: class {answer.label}, similarity {score}"
            tiles.append(Tile(answer.row, answer.label, kind, words, answer.path, score, gap=not place))
        return tiles

    def numbers(self) -> dict[str, Any]:
        return self.__dict__ | {"answers": [answer.__dict__ for answer in self.answers]}


def select(test: UnseenImages, result: Result) -> list[Strip]:
    """Some queries of each kind, with their answers."""
    rows = [(kind, row) for kind in TITLES for row in _rows(kind, result)]
    gallery = test.embeddings if test.gallery is None else test.gallery
    # one more than shown: a query that is in the gallery finds itself
    near = neighbours(test.embeddings[[row for _, row in rows]], gallery, ANSWERS + 1, normalise=test.geometry)
    strips = []
    for (kind, row), places, scores in zip(rows, near.indices.tolist(), near.scores.tolist(), strict=True):
        pairs = zip((place + test.first_of_gallery for place in places), scores, strict=True)
        answers = [_answer(test, row, *pair) for pair in pairs if pair[0] != row][:ANSWERS]
        value = float(result.per_query["map@r"][row])
        strips.append(Strip(kind, row, test.labels[row], test.path(row), value, answers))
    return strips


def _answer(test: UnseenImages, query: int, row: int, score: float) -> AnsweredQuery:
    label = test.all_labels[row]
    return AnsweredQuery(row, label, score, test.alike(query, row), test.path(row))


def _rows(kind: str, result: Result) -> list[int]:
    """Queries of as many different classes as possible: those with the lowest, the middle or the highest map@r."""
    values = result.per_query["map@r"]
    counted = np.flatnonzero(~np.isnan(values))
    (codes,), _ = encode(result.labels)
    sizes = np.bincount(codes)[codes]
    # among equals: a hit that comes late is worse, and a large class found whole is better
    ranked = counted[np.lexsort((sizes[counted], result.per_query["mrr"][counted], values[counted]))]
    if kind == "best":
        ranked = ranked[::-1]
    elif kind == "typical":
        ranked = ranked[np.argsort(np.abs(np.arange(len(ranked)) - (len(ranked) - 1) / 2), kind="stable")]
    return _of_different_classes(ranked, result)


def _of_different_classes(ranked: Codes, result: Result) -> list[int]:
    classes: set[Hashable] = set()
    first: list[int] = []
    rest: list[int] = []
    for row in ranked[:2000].tolist():
        (rest if result.labels[row] in classes else first).append(row)
        classes.add(result.labels[row])
    return (first + rest)[:QUERIES]


def draw(strips: list[Strip], addresses: Mapping[int, str]) -> Html:
    parts = []
    for kind, title in TITLES.items():
        parts += [element("h3", title), *(_strip(strip, addresses) for strip in strips if strip.kind == kind)]
    return join(*parts)


def _strip(strip: Strip, addresses: Mapping[int, str]) -> Html:
    query, *answers = strip.tiles()
    hits = sum(answer.hit for answer in strip.answers)
    words = f"{hits} of the first {len(answers)} right; map@r {strip.value:.2f}"
    shown = element("div", *(tile(answer, addresses) for answer in answers), class_="answers")
    beside = element("div", element("p", words), file_names([query, *answers]), class_="words")
    return element("div", tile(query, addresses), shown, beside, class_="strip")
