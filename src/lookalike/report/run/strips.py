"""Queries and their first answers, side by side: the best, the typical and the worst, hits and misses marked."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lookalike.evaluation import Result, neighbours
from lookalike.evaluation.inputs import Codes
from lookalike.labels import encode
from lookalike.report.page.markup import Html, element, join
from lookalike.report.run.reading import Unseen
from lookalike.report.run.tiles import Tile

QUERIES, ANSWERS = 5, 10
TITLES = {
    "worst": "Worst queries: where to look for wrong labels, near-identical classes and missing variety",
    "typical": "Typical queries: what to expect from a query taken at random",
    "best": "Best queries: what the model is sure of",
}


@dataclass(frozen=True)
class Answer:
    row: int
    label: str
    score: float
    hit: bool


@dataclass(frozen=True)
class Strip:
    kind: str
    row: int
    label: str
    value: float  # map@r of this query
    answers: list[Answer]

    def rows(self) -> list[int]:
        return [self.row, *(answer.row for answer in self.answers)]

    def tiles(self) -> list[Tile]:
        answers = [Tile(answer.row, answer.label, "hit" if answer.hit else "miss") for answer in self.answers]
        return [Tile(self.row, self.label, "query"), *(tile._replace(gap=not k) for k, tile in enumerate(answers))]

    def numbers(self) -> dict[str, Any]:
        return self.__dict__ | {"answers": [answer.__dict__ for answer in self.answers]}


def find(test: Unseen, result: Result) -> list[Strip]:
    chosen = [(kind, row) for kind in TITLES for row in _rows(kind, result)]
    queries = test.embeddings[[row for _, row in chosen]]
    gallery = test.embeddings if test.gallery is None else test.gallery
    labels = test.labels if test.gallery_labels is None else test.gallery_labels
    # one more than shown: a query that is in the gallery finds itself
    found = neighbours(queries, gallery, ANSWERS + 1, normalise=test.geometry)
    strips = []
    for (kind, row), places, scores in zip(chosen, found.indices.tolist(), found.scores.tolist(), strict=True):
        pairs = [pair for pair in zip(places, scores, strict=True) if test.gallery is not None or pair[0] != row]
        answers = [
            Answer(place + test.first_of_gallery, labels[place], score, labels[place] == test.labels[row])
            for place, score in pairs[:ANSWERS]
        ]
        strips.append(Strip(kind, row, test.labels[row], float(result.per_query["map@r"][row]), answers))
    return strips


def _rows(kind: str, result: Result) -> list[int]:
    """Queries of as many different classes as possible: the lowest, the middle or the highest map@r."""
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
    seen: set[Hashable] = set()
    first: list[int] = []
    rest: list[int] = []
    for row in ranked[:2000].tolist():
        (rest if result.labels[row] in seen else first).append(row)
        seen.add(result.labels[row])
    return (first + rest)[:QUERIES]


def draw(strips: list[Strip], pictures: Mapping[int, str]) -> Html:
    parts = []
    for kind, title in TITLES.items():
        shown = [_strip(strip, pictures) for strip in strips if strip.kind == kind]
        parts.append(join(element("h3", title), *shown))
    return join(*parts)


def _strip(strip: Strip, pictures: Mapping[int, str]) -> Html:
    hits = sum(answer.hit for answer in strip.answers)
    words = f"{hits} of the first {len(strip.answers)} right; map@r {100 * strip.value:.0f} %"
    query = tile(strip.row, strip.label, f"query of class {strip.label}", pictures, "query")
    answers = [
        tile(answer.row, answer.label, _words(answer), pictures, "hit" if answer.hit else "miss", f"{answer.score:.2f}")
        for answer in strip.answers
    ]
    return element("div", query, element("div", *answers, class_="answers"), element("p", words), class_="strip")


def _words(answer: Answer) -> str:
    return f"{'hit' if answer.hit else 'miss'}: class {answer.label}, similarity {answer.score:.2f}"


def tile(row: int, label: str, words: str, pictures: Mapping[int, str], kind: str, note: str = "") -> Html:
    """A picture with its class below it; without a picture, the name alone."""
    sign = {"hit": "✓", "miss": "✕"}.get(kind, "")
    if row in pictures:
        shown = element("img", src=pictures[row], alt=words, width=64, height=64)
    else:
        shown = element("span", label, class_="nameless", role="img", aria_label=words)
    mark = element("span", sign, class_="sign", aria_hidden="true") if sign else Html()
    caption = element("span", label, element("small", note) if note else Html(), class_="name", aria_hidden="true")
    return element("span", shown, mark, caption, class_=f"tile {kind}", title=words)
