"""Labelled images asked against each other: what a run knows of its own test classes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lookalike.search.calibration import Trials
from lookalike.search.filters import Condition
from lookalike.search.items import Vectors

TOGETHER = 64  # queries scored at once
Row = tuple[float, str, str, bool]
LABELLED = (Condition("label", "!=", (None,)),)


def among_themselves(vectors: Vectors, labels: Sequence[str], most: int | None = None) -> Trials:
    """Every image (or `most` of them, evenly spread) asked against the others, with its class and without."""
    names, codes = np.unique(np.array(labels, dtype=object).astype(str), return_inverse=True)
    trials: list[Row] = []
    exact = vectors.astype(np.float64)
    chosen = np.arange(len(exact)) if most is None else np.unique(np.linspace(0, len(exact) - 1, most).astype(int))
    for start in range(0, len(chosen), TOGETHER):
        rows = chosen[start : start + TOGETHER]
        scores = exact[rows] @ exact.T
        scores[np.arange(len(rows)), rows] = -np.inf
        own = codes[rows, None] == codes[None]
        best, other = scores.argmax(1), np.where(own, -np.inf, scores).argmax(1)
        for place, (row, near, away) in enumerate(zip(rows, best, other, strict=True)):
            label = str(names[codes[row]])
            if own[place].sum() > 1:
                trials.append((float(scores[place, near]), label, str(names[codes[near]]), True))
            trials.append((float(scores[place, away]), label, str(names[codes[away]]), False))
    return as_trials(trials)


def as_trials(rows: Sequence[Row]) -> Trials:
    """Similarity, class asked, class answered, and whether the class was there, one row per trial."""
    columns: list[Any] = list(zip(*rows, strict=True))
    return Trials(np.array(columns[0]), list(columns[1]), list(columns[2]), np.array(columns[3], bool))
