"""A block of queries and the exact scores of their relevant items, against which all other scores are counted."""

from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from lookalike.evaluation.engine.question import Question
from lookalike.evaluation.engine.ranks import RelevantRanks
from lookalike.evaluation.inputs import Codes

ROWS = 1024  # a block of 1024 × 1024 scores is 4 MB: it stays in the cache between product and scan
ENTRIES = 2**20  # relevant scores in one panel
BUDGET = 2**21  # relevant scores held at once, at about 70 bytes each


@dataclass
class Panel:
    """Arrays are relevant items × queries, the best first; a query with fewer is padded with +∞.

    `over` counts irrelevant items above a relevant one by more than the tolerance, `upto` those and the tied ones.
    """

    rows: slice
    counts: Codes
    relevant: Any
    low: Any
    high: Any
    over: Any
    upto: Any
    tables: tuple[Any, ...] = ()  # where to look up how many items a score is above, if there are many
    lock: Lock = field(default_factory=Lock)

    def add(self, over: Any, upto: Any) -> None:
        with self.lock:
            self.over += over
            self.upto += upto

    def ranks(self, question: Question) -> RelevantRanks:
        filled = np.arange(len(self.over))[:, None] < self.counts
        over, upto = (np.asarray(part.cpu() if isinstance(part, Tensor) else part).T for part in (self.over, self.upto))
        size = question.size[self.rows]
        placed = (part[filled.T].astype(np.int64) for part in (over, upto))
        return RelevantRanks(question.queries[self.rows], self.counts, size, *placed)


def clean(question: Question, rows: slice, scores: NDArray[np.float64]) -> tuple[Codes, NDArray[np.float64]]:
    """Scores of each query's own class (queries × items, −∞ where there is none), without the query and ignored items.

    Returns the number of relevant items per query and their scores as relevant × queries, the best first.
    """
    first, width = question.first[rows], scores.shape[1]
    if question.leave_one_out:
        here = np.arange(rows.start, rows.stop)
        scores[np.arange(len(here)), question.offset + here - first] = -np.inf
    if question.ignore is not None:
        column = np.minimum(first[:, None] + np.arange(width), len(question.gallery) - 1)
        hidden = question.ignore.hides(question.queries[rows][:, None], question.gallery[column])
        scores[hidden] = -np.inf
    counts = (scores > -np.inf).sum(1)
    best = -np.sort(-scores, axis=1)[:, : max(int(counts.max()), 1)].T
    return counts, np.ascontiguousarray(np.where(best == -np.inf, np.inf, best))


def partition(question: Question) -> list[slice]:
    """Rows of the panels: similarly many relevant items in each, and a bounded number of entries."""
    widths = question.last - question.first
    pieces, start = [], 0
    while start < len(widths):
        most = 2 * int(widths[start]) + 4
        stop = min(int(np.searchsorted(widths, most, side="right")), start + ROWS)
        while stop - start > 1 and (stop - start) * int(widths[stop - 1]) > ENTRIES:
            stop = start + max(1, ENTRIES // int(widths[stop - 1]))
        pieces.append(slice(start, stop))
        start = stop
    return pieces


def waves(question: Question, pieces: list[slice]) -> list[list[slice]]:
    """Panels held in memory at the same time; usually all of them."""
    groups: list[list[slice]] = [[]]
    held = 0
    for piece in pieces:
        entries = (piece.stop - piece.start) * int(question.last[piece.stop - 1] - question.first[piece.stop - 1])
        if groups[-1] and held + entries > BUDGET:
            groups.append([])
            held = 0
        groups[-1].append(piece)
        held += entries
    return groups
