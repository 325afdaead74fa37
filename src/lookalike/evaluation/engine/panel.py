"""A block of queries and the exact scores of their relevant items, against which all other scores are counted."""

import itertools
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lookalike.evaluation.engine.question import RankingTask
from lookalike.evaluation.engine.ranks import Gains, RelevantRanks
from lookalike.evaluation.inputs import Codes


@dataclass(frozen=True)
class Blocks:
    """How much is computed at a time, and how. Time and memory depend on it; no result does."""

    rows: int = 1024  # a block of 1024 × 1024 scores is 4 MB: it stays in the cache between product and scan
    area: int = 1024 * 1024  # scores in one block
    entries: int = 2**20  # relevant scores in one panel
    wide: int = 256  # members of a class whose scores are one product
    budget: int = 2**21  # relevant scores held at once, at about 70 bytes each
    few: int = 24  # relevant items up to which a branch-free sweep per item beats a lookup table
    near: int = 2**18  # scores of a block that are settled one by one; with more, it is scored again in float64
    many: int = 512  # relevant items of a query on average from which rows may be sorted whole (`whole_rows`)
    compiled: bool = True  # whether loops on the CPU are compiled, not torch operations as on other devices


BLOCKS = Blocks()


@dataclass
class Listed:
    """The relevant items of a panel one by one: positions in the gallery (−1: none) and, if graded, their gains.

    Once the scores are sorted, `grades` and `apart` (whether an item is clearly below the one before it) follow them.
    """

    columns: Codes
    grades: NDArray[np.float64] | None
    apart: NDArray[np.bool_] | None = None

    def sort(self, scores: NDArray[np.float64], tolerance: float) -> None:
        if self.grades is not None:
            order = np.argsort(-scores, axis=1, kind="stable")
            falling = np.take_along_axis(scores, order, 1)
            self.grades = np.take_along_axis(self.grades, order, 1)
            with np.errstate(invalid="ignore"):  # −∞ − −∞, where there is no item
                self.apart = np.diff(falling, axis=1, prepend=np.inf) < -tolerance

    def gains(self, filled: NDArray[np.bool_]) -> Gains | None:
        if self.grades is None or self.apart is None:
            return None
        width = filled.shape[1]
        return Gains(self.grades[:, :width][filled], self.apart[:, :width][filled])


@dataclass
class Panel:
    """Arrays are relevant items × queries, the best first; a query with fewer is padded with +∞.

    `over` counts irrelevant items above a relevant one by more than the tolerance, `upto` those and the tied ones.
    """

    rows: slice
    totals: Codes  # relevant items of each query
    counts: Codes  # those of them that are counted for
    relevant: Any
    low: Any
    high: Any
    over: Any
    upto: Any
    tables: tuple[Any, ...] = ()  # where to look up how many items a score is above, if there are many
    listed: Listed | None = None  # where relevant items are no range of the gallery
    lock: Lock = field(default_factory=Lock)

    def add(self, over: Any, upto: Any) -> None:
        with self.lock:
            self.over += over
            self.upto += upto

    def ranks(self, question: RankingTask) -> RelevantRanks:
        filled = np.arange(len(self.over))[:, None] < self.counts
        over, upto = (np.asarray(part.cpu() if isinstance(part, Tensor) else part).T for part in (self.over, self.upto))
        size = question.size[self.rows]
        over, upto = (part[filled.T].astype(np.int64) for part in (over, upto))
        gains = None if self.listed is None else self.listed.gains(filled.T)
        return RelevantRanks(question.queries[self.rows], self.totals, self.counts, size, over, upto, gains)


def clean(
    question: RankingTask,
    rows: slice,
    scores: NDArray[np.float64],
    tolerance: float,
    most: int | None,
    listed: Listed | None = None,
) -> tuple[Codes, NDArray[np.float64]]:
    """Scores of each query's own class (queries × items, −∞ where there is none), without the query and ignored items.

    Returns the number of relevant items per query and the `most` best of their scores as items × queries, the best
    first.
    """
    first, width = question.first[rows], scores.shape[1]
    here = np.arange(rows.start, rows.stop)
    if listed is not None:
        scores[listed.columns < 0] = -np.inf
    if question.leave_one_out and listed is not None:
        scores[listed.columns == (question.offset + here)[:, None]] = -np.inf
    elif question.leave_one_out:
        scores[np.arange(len(here)), question.offset + here - first] = -np.inf
    if question.ignore is not None:
        column = first[:, None] + np.arange(width) if listed is None else np.maximum(listed.columns, 0)
        column = np.minimum(column, len(question.gallery) - 1)
        hidden = question.ignore.hides(question.queries[rows][:, None], question.gallery[column])
        scores[hidden] = -np.inf
    if listed is not None:
        listed.sort(scores, tolerance)
    counts = (scores > -np.inf).sum(1)
    number = max(int(counts.max()), 1)
    if most is not None and 4 * most < number:
        best = torch.from_numpy(scores).topk(most, dim=1).values.numpy().T
    else:
        best = -np.sort(-scores, axis=1)[:, : number if most is None else min(number, most)].T
    return counts, np.ascontiguousarray(np.where(best == -np.inf, np.inf, best))


def marked(columns: Codes, block: slice) -> NDArray[np.bool_]:
    """Which positions of a block of the gallery each row lists.

    >>> marked(np.array([[1, 4], [5, -1]]), slice(4, 6))
    array([[ True, False],
           [False,  True]])
    """
    mask = np.zeros((len(columns), block.stop - block.start), np.bool_)
    row, slot = np.nonzero((columns >= block.start) & (columns < block.stop))
    mask[row, columns[row, slot] - block.start] = True
    return mask


def entries_of(question: RankingTask, most: int | None) -> Codes:
    """How many relevant scores each query holds: all, or the `most` best of its class."""
    widths = question.last - question.first
    return widths if most is None or question.relevance is not None else np.minimum(widths, most)


def portions(question: RankingTask, rows: slice, blocks: Blocks) -> list[slice]:
    """Rows of one class each, where classes are wide; so few that all scores of that class are a bounded number."""
    widths = question.last[rows] - question.first[rows]
    if question.relevance is not None or int(widths.max()) < blocks.wide:
        return [rows]
    turns = rows.start + 1 + np.flatnonzero(np.diff(question.first[rows]))
    parts = []
    for start, stop in itertools.pairwise([rows.start, *turns.tolist(), rows.stop]):
        step = max(1, blocks.entries // int(question.last[start] - question.first[start]))
        parts += [slice(left, min(left + step, stop)) for left in range(start, stop, step)]
    return parts


def partition(question: RankingTask, most: int | None, blocks: Blocks) -> list[slice]:
    """Rows of the panels: similarly many relevant items in each, and a bounded number of entries."""
    widths = entries_of(question, most)
    pieces, start = [], 0
    while start < len(widths):
        most = 2 * int(widths[start]) + 4
        stop = min(int(np.searchsorted(widths, most, side="right")), start + blocks.rows)
        while stop - start > 1 and (stop - start) * int(widths[stop - 1]) > blocks.entries:
            stop = start + max(1, blocks.entries // int(widths[stop - 1]))
        pieces.append(slice(start, stop))
        start = stop
    return pieces


def waves(question: RankingTask, pieces: list[slice], most: int | None, blocks: Blocks) -> list[list[slice]]:
    """Panels held in memory at the same time; usually all of them."""
    groups: list[list[slice]] = [[]]
    held, widths = 0, entries_of(question, most)
    for piece in pieces:
        entries = (piece.stop - piece.start) * int(widths[piece.stop - 1])
        if groups[-1] and held + entries > blocks.budget:
            groups.append([])
            held = 0
        groups[-1].append(piece)
        held += entries
    return groups
