"""The metrics of [math F] once more, as plain loops over a full ranking: what the fast code must agree with."""

import math
from collections.abc import Callable, Sequence
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
import pytest

KS = (1, 2, 4, 8, 10, 16, 32, 100, 1000)


def scores_of(queries: np.ndarray, gallery: np.ndarray, precision: Any = np.float64) -> np.ndarray:
    """Cosines in one precision."""

    def unit(vectors: np.ndarray) -> np.ndarray:
        wide = vectors.astype(np.float64)
        lengths = np.sqrt((wide**2).sum(1, keepdims=True))
        return (wide / np.where(lengths > 0, lengths, 1)).astype(precision)

    return unit(queries) @ unit(gallery).T


def relevance(scores: Sequence[float], relevant: Sequence[bool], ties: str, tolerance: float) -> list[bool]:
    """The ranking as a list of hits, by putting every relevant item at 1 + (number of items above it)."""
    hits = sorted((score for score, good in zip(scores, relevant, strict=True) if good), reverse=True)
    misses = [score for score, good in zip(scores, relevant, strict=True) if not good]
    ranking = [False] * len(scores)
    for index, hit in enumerate(hits):
        edge = hit - tolerance if ties == "pessimistic" else hit + tolerance
        above = sum(miss >= edge if ties == "pessimistic" else miss > edge for miss in misses)
        ranking[index + above] = True
    return ranking


def average_precision(ranking: Sequence[bool], cap: int) -> float:
    total, hits = 0.0, 0
    for place, hit in enumerate(ranking[:cap], start=1):
        hits += hit
        total += hits / place if hit else 0.0
    return total


def metrics_of(ranking: Sequence[bool]) -> dict[str, float]:
    """All ranking metrics of one query, from its list of hits."""
    relevant, size = sum(ranking), len(ranking)
    values = {}
    for k in KS:
        cut = min(k, size)
        hits = sum(ranking[:cut])
        precision, recall = hits / cut, hits / relevant
        gain = sum(hit / math.log2(place + 1) for place, hit in enumerate(ranking[:cut], start=1))
        ideal = sum(1 / math.log2(place + 1) for place in range(1, min(cut, relevant) + 1))
        values[f"recall@{k}"] = float(hits > 0)
        values[f"precision@{k}"] = precision
        values[f"f1_retrieval@{k}"] = 2 * precision * recall / (precision + recall) if hits else 0.0
        values[f"ndcg@{k}"] = gain / ideal
    size_of_class = relevant + 1
    values["r_precision"] = sum(ranking[:relevant]) / relevant
    values["map@r"] = average_precision(ranking, relevant) / relevant
    values["map@c"] = average_precision(ranking, size_of_class) / size_of_class
    values["map@1000"] = average_precision(ranking, 1000) / size_of_class
    values["map_lim"] = average_precision(ranking, 1023) / size_of_class
    values["map"] = average_precision(ranking, size) / relevant
    values["precision@c_doc"] = sum(ranking[:size_of_class]) / min(size_of_class, size)
    values["precision@1000_doc"] = sum(ranking[:1000]) / min(1000, size)
    values["mrr"] = 1 / (ranking.index(True) + 1)
    return values


def levels(scores: Sequence[float], tolerance: float) -> list[int]:
    """Scores closer than the tolerance as one and the same whole number."""
    rising = sorted(scores)
    steps = [b - a > tolerance for a, b in pairwise(rising)]
    level = dict(zip(rising, np.cumsum([0, *steps]).tolist(), strict=True))
    return [level[score] for score in scores]


def orders(scores: Sequence[float], relevant: Sequence[bool]) -> list[list[bool]]:
    """All equally likely lists of hits when exactly equal scores may come in any order."""
    parts = []
    for value in sorted(set(scores), reverse=True):
        group = [good for score, good in zip(scores, relevant, strict=True) if score == value]
        choices = combinations(range(len(group)), sum(group))
        parts.append([[place in places for place in range(len(group))] for places in choices])
    return [[hit for part in choice for hit in part] for choice in product(*parts)]


def brute_force(
    queries: np.ndarray,
    labels: Sequence[Any],
    gallery: np.ndarray | None = None,
    gallery_labels: Sequence[Any] | None = None,
    ignored: np.ndarray | None = None,
    ties: str = "pessimistic",
    tolerance: float = 1e-12,
    precision: Any = np.float64,
) -> dict[str, list[float]]:
    """Every ranking metric for every query; None where a query has no relevant item."""
    items, item_labels = (queries, labels) if gallery is None else (gallery, gallery_labels)
    assert item_labels is not None
    scores = scores_of(queries, items, precision).astype(np.float64)
    columns: dict[str, list[float]] = {}
    for row, label in enumerate(labels):
        visible = [
            column
            for column in range(len(items))
            if not (gallery is None and column == row) and not (ignored is not None and ignored[row, column])
        ]
        good = [item_labels[column] == label for column in visible]
        if not any(good):
            values = dict.fromkeys(metrics_of([True]), math.nan)
        elif ties == "expected":
            rankings = orders(levels([scores[row, column] for column in visible], tolerance), good)
            every = [metrics_of(ranking) for ranking in rankings]
            values = {name: sum(one[name] for one in every) / len(every) for name in every[0]}
        else:
            values = metrics_of(relevance([scores[row, column] for column in visible], good, ties, tolerance))
        for name, value in values.items():
            columns.setdefault(name, []).append(value)
    return columns


@pytest.fixture(scope="session")
def reference() -> Callable[..., dict[str, list[float]]]:
    return brute_force
