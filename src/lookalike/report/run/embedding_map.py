"""The embedding on two axes: t-SNE (van der Maaten and Hinton, 2008) where openTSNE is installed, else PCA."""

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
from lookalike.report.run.pictures import CELL, COLUMNS
from lookalike.report.run.reading import Unseen

POINTS = 1500
LEAST_PER_CLASS = 12  # drawn of a class before the next one is begun
STATES = (
    "nearest neighbour of the same class",
    "nearest neighbour of another class",
    "no other image of its class",
)


@dataclass(frozen=True)
class Map:
    """Some queries as points; `states` index STATES."""

    method: str
    rows: list[int]
    points: NDArray[np.float64]  # n × 2
    states: list[int]


def find(test: Unseen, result: Result, seed: int = 0) -> Map:
    rows = _drawn(test.labels, seed)
    vectors = test.embeddings[rows].astype(np.float64)
    if test.geometry == "sphere":
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    method, points = (
        ("t-SNE", _tsne(vectors, seed)) if find_spec("openTSNE") and len(rows) > 10 else ("PCA", _pca(vectors))
    )
    right = result.per_query["recall@1"][rows]
    return Map(method, rows.tolist(), points, [2 if np.isnan(value) else int(value < 1) for value in right])


def _drawn(labels: list[str], seed: int) -> Codes:
    """All rows, or a limited number of whole classes: of single images no map would show which belong together."""
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
    found: NDArray[np.float64] = centred @ (axes * np.where(strongest < 0, -1.0, 1.0)[:, None]).T
    return found


def _tsne(vectors: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    perplexity = min(30, (len(vectors) - 1) // 3)
    method = import_module("openTSNE").TSNE(
        perplexity=perplexity, initialization="pca", neighbors="exact", random_state=seed, n_jobs=1,
        negative_gradient_method="bh",
    )  # fmt: skip
    return np.asarray(method.fit(vectors), np.float64)


def chart(found: Map) -> Chart:
    series = []
    for state, name in enumerate(STATES):
        chosen = [place for place, value in enumerate(found.states) if value == state]
        if chosen:
            xs, ys = (tuple(found.points[chosen, axis].tolist()) for axis in (0, 1))
            series.append(Series(name, xs, ys, "dots", state))
    ends = [around(found.points[:, axis].tolist()) for axis in (0, 1)]
    return Chart(
        "map", "Map of the embedding",
        "Each point is an image; tight, separate islands are classes the model tells apart, mixed ones it confuses.",
        Axis(f"first {found.method} axis (no unit)", *ends[0]), Axis(f"second {found.method} axis (no unit)", *ends[1]),
        tuple(series), extra={"rows": found.rows, "method": found.method},
    )  # fmt: skip


def for_script(found: Map, test: Unseen, cells: Mapping[int, int], address: str) -> dict[str, Any]:
    """What the page's script needs to draw the map: points in 0 … 1, names once, the sheet of pictures."""
    low, high = found.points.min(0), found.points.max(0)
    spread = np.where(high > low, high - low, 1.0)
    points = ((found.points - low) / spread).round(4).tolist()
    names = sorted({test.labels[row] for row in found.rows})
    number = {name: place for place, name in enumerate(names)}
    groups = sorted({test.categories[row] for row in found.rows}) if test.categories else []
    group = {name: place for place, name in enumerate(groups)}
    return {
        "points": points,
        "rows": found.rows,
        "states": found.states,
        "state_names": STATES,
        "labels": [number[test.labels[row]] for row in found.rows],
        "label_names": names,
        "categories": [group[test.categories[row]] for row in found.rows] if test.categories else [],
        "category_names": groups,
        "cells": [cells.get(row, -1) for row in found.rows],
        "sheet": address,
        "cell": CELL,
        "columns": min(COLUMNS, max(1, len(cells))),
    }
