"""Labelled images asked against each other: what a run knows of its own test classes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lookalike.search.calibration import Trials
from lookalike.search.filters import Condition
from lookalike.search.items import Vectors

TOGETHER = 64  # queries of one search
LABELLED = (Condition("label", "!=", (None,)),)


def among_themselves(vectors: Vectors, labels: Sequence[str]) -> Trials:
    """Every image asked against the others, with its class and without."""
    names, codes = np.unique(np.array(labels, dtype=object).astype(str), return_inverse=True)
    trials: list[tuple[float, bool, str, bool]] = []
    exact = vectors.astype(np.float64)
    for start in range(0, len(exact), TOGETHER):
        rows = np.arange(start, min(start + TOGETHER, len(exact)))
        scores = exact[rows] @ exact.T
        scores[np.arange(len(rows)), rows] = -np.inf
        own = codes[rows, None] == codes[None]
        best, other = scores.max(1), np.where(own, -np.inf, scores).max(1)
        right = np.where(own, scores, -np.inf).max(1) > other
        for row, mine, away, good in zip(rows, best, other, right, strict=True):
            label = str(names[codes[row]])
            if own[row - start].sum() > 1:
                trials.append((float(mine), bool(good), label, True))
            trials.append((float(away), False, label, False))
    return as_trials(trials)


def as_trials(rows: Sequence[tuple[float, bool, str, bool]]) -> Trials:
    columns: list[Any] = list(zip(*rows, strict=True))
    return Trials(np.array(columns[0]), np.array(columns[1], bool), list(columns[2]), np.array(columns[3], bool))
