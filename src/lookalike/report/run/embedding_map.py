"""The embedding on two axes: t-SNE (van der Maaten and Hinton, 2008) where openTSNE is installed, else PCA.

On the page it is a canvas that the script draws on, with its buttons and the panel that shows one point.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.evaluation import Result
from lookalike.evaluation.inputs import Codes
from lookalike.report.charts.chart import Axis, Chart, Series, around
from lookalike.report.markup import Html, element, join
from lookalike.report.page.page import note
from lookalike.report.run.record import UnseenImages
from lookalike.report.run.thumbnails import CELL, COLUMNS

POINTS = 1500
LEAST_PER_CLASS = 12  # drawn of a class before the next one begins
STATES = ("nearest neighbour of the same class", "nearest neighbour of another class", "no other image of its class")
BUTTONS = (("in", "+", "Zoom in"), ("out", "−", "Zoom out"), ("reset", "whole", "Whole map"))


@dataclass(frozen=True)
class EmbeddingMap:
    """Some queries as points; `states` index STATES."""

    method: str
    rows: list[int]
    points: NDArray[np.float64]  # n × 2
    states: list[int]


def embedding_map(test: UnseenImages, result: Result, seed: int = 0) -> EmbeddingMap:
    rows = _sample(test.labels, seed)
    vectors = test.embeddings[rows].astype(np.float64)
    if test.geometry == "sphere":
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    if find_spec("openTSNE") and len(rows) > 10:
        method, points = "t-SNE", _tsne(vectors, seed)
    else:
        method, points = "PCA", _pca(vectors)
    recall = result.per_query["recall@1"][rows]
    return EmbeddingMap(method, rows.tolist(), points, [2 if np.isnan(value) else int(value < 1) for value in recall])


def _sample(labels: list[str], seed: int) -> Codes:
    """All rows, or a limited number of whole classes: single images would not show what belongs together."""
    if len(labels) <= POINTS:
        return np.arange(len(labels))
    generator = np.random.default_rng(seed)
    by_class: dict[str, list[int]] = {}
    for row in generator.permutation(len(labels)).tolist():
        by_class.setdefault(labels[row], []).append(row)
    each = max(LEAST_PER_CLASS, -(-POINTS // len(by_class)))
    rows = [row for members in by_class.values() for row in members[:each]]
    return np.sort(np.array(rows[:POINTS], np.int64))


def _pca(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    centred = vectors - vectors.mean(0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    axes = np.vstack([axes, np.zeros((2, axes.shape[1]))])[:2]
    strongest = axes[[0, 1], np.abs(axes).argmax(1)]
    # the sign of a singular vector is arbitrary: fixed, so that a page written twice shows the same map
    points: NDArray[np.float64] = centred @ (axes * np.where(strongest < 0, -1.0, 1.0)[:, None]).T
    return points


def _tsne(vectors: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    perplexity = min(30, (len(vectors) - 1) // 3)
    method = import_module("openTSNE").TSNE(
        perplexity=perplexity,
        initialization="pca",
        neighbors="exact",
        random_state=seed,
        n_jobs=1,
        negative_gradient_method="bh",
    )
    return np.asarray(method.fit(vectors), np.float64)


def chart(shown: EmbeddingMap) -> Chart:
    series = []
    for state, name in enumerate(STATES):
        places = [place for place, value in enumerate(shown.states) if value == state]
        if places:
            xs, ys = (tuple(shown.points[places, axis].tolist()) for axis in (0, 1))
            series.append(Series(name, xs, ys, "dots", state))
    ends = [around(shown.points[:, axis].tolist()) for axis in (0, 1)]
    return Chart(
        "map",
        "Map of the embedding",
        "Each point is an image; tight, separate islands are classes the model tells apart, mixed ones it confuses.",
        Axis(f"first {shown.method} axis", *ends[0]),
        Axis(f"second {shown.method} axis", *ends[1]),
        tuple(series),
        extra={"rows": shown.rows, "method": shown.method},
    )


def for_script(shown: EmbeddingMap, test: UnseenImages, cells: Mapping[int, int], address: str) -> dict[str, Any]:
    """What the page's script needs to draw the map: points in 0 … 1, every name once, the sheet of pictures."""
    low, high = shown.points.min(0), shown.points.max(0)
    spread = np.where(high > low, high - low, 1.0)
    label_names, labels = _numbered([test.labels[row] for row in shown.rows])
    category_names, categories = _numbered([test.categories[row] for row in shown.rows] if test.categories else [])
    return {
        "points": ((shown.points - low) / spread).round(4).tolist(),
        "names": [test.path(row) or f"row {row}" for row in shown.rows],
        "states": shown.states,
        "state_names": STATES,
        "labels": labels,
        "label_names": label_names,
        "categories": categories,
        "category_names": category_names,
        "cells": [cells.get(row, -1) for row in shown.rows],
        "sheet": address,
        "cell": CELL,
        "columns": min(COLUMNS, max(1, len(cells))),
    }


def _numbered(words: list[str]) -> tuple[list[str], list[int]]:
    """The different words, sorted, and the number of each word among them."""
    names = sorted(set(words))
    number = {name: place for place, name in enumerate(names)}
    return names, [number[word] for word in words]


def map_view(shown: EmbeddingMap, test: UnseenImages, pictured: bool) -> Html:
    some = len(shown.rows) < len(test.labels)
    which = f"{len(shown.rows):,} of {len(test.labels):,} images" if some else "All images"
    words = f"{which}, placed by {shown.method} so that near points are similar; distances across the map mean little."
    options = [("state", "nearest neighbour right or wrong"), *([("category", "category")] if test.categories else [])]
    choose = element("select", *(element("option", name, value=value) for value, name in options), id="map-colour")
    buttons = [
        element("button", sign, type="button", id=f"map-{name}", aria_label=words) for name, sign, words in BUTTONS
    ]
    canvas = element(
        "canvas",
        "The map is drawn by a script; figures/map.svg shows it without one.",
        id="map-canvas",
        tabindex="0",
        role="img",
        aria_label=f"Map of the embedding by {shown.method}. Arrow keys go from image to image.",
        aria_describedby="map-panel",
    )
    hint = "Zoom in to see the images themselves." if pictured else "Point at a dot to see its class."
    caption = element(
        "figcaption",
        element("strong", "Map of the embedding"),
        " Tight, separate islands are classes the model tells "
        f"apart, mixed ones it confuses. {hint} Wheel, pinch or buttons zoom; drag moves.",
    )
    return join(
        note(words),
        element(
            "figure",
            element("div", element("label", "Colour by ", choose), element("span", *buttons), class_="tools"),
            element("div", canvas, element("div", id="map-panel", aria_live="polite"), class_="map"),
            element("div", id="map-legend"),
            element("p", f"→ first {shown.method} axis, ↑ second", class_="axes"),
            caption,
            class_="wide",
            id="figure-map",
        ),
    )
