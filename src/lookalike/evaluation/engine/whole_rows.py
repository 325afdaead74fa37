"""Ranks where classes are huge: whole rows of float64 scores, each put in order once (on the CPU).

Counting compares every score with every query's own sorted scores; where a class is a good part of the gallery, nearly
every float32 score is within rounding of one of them. So all scores are float64 here, and a row is sorted as a whole.
"""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookalike.evaluation.engine.counting import hide_ignored
from lookalike.evaluation.engine.panel import Blocks
from lookalike.evaluation.engine.question import RankingTask
from lookalike.evaluation.engine.ranks import RelevantRanks
from lookalike.evaluation.engine.space import Space

SCORES = 2**23  # float64 scores of one product
SHARE = 6  # of the gallery: classes that are a smaller part are counted faster


def suits(question: RankingTask, device: torch.device, most: int | None, blocks: Blocks) -> bool:
    """Whether rows are sorted: all relevant items are asked for, and on average they are a good part of the gallery."""
    if device.type != "cpu" or not blocks.compiled or most is not None or question.relevance is not None:
        return False
    relevant = float((question.last - question.first).mean()) if len(question.queries) else 0.0
    return relevant >= max(blocks.many, len(question.gallery) / SHARE)


class RowSorter:
    """Sorts the rows of a question, some at a time."""

    def __init__(self, question: RankingTask, queries: Space, gallery: Space, tolerance: float) -> None:
        from lookalike.evaluation.engine import kernel, row_kernel

        self.kernel: Any = kernel
        self.row_kernel: Any = row_kernel
        self.question, self.queries, self.tolerance = question, queries, tolerance
        self.gallery, self.items = gallery, gallery.exact(slice(None))
        self.buckets = 1 << max(4, (len(question.gallery) - 1).bit_length())

    def pieces(self) -> list[slice]:
        """Rows of one product each."""
        rows, step = len(self.question.queries), max(1, SCORES // len(self.question.gallery))
        return [slice(start, min(start + step, rows)) for start in range(0, rows, step)]

    def scores(self, rows: slice) -> Tensor:
        """Float64 scores with the whole gallery, −∞ for the query itself."""
        shifted = self.question.shifted(rows)
        scores = self.queries.exact(shifted) @ self.items.T
        if not self.queries.spherical:
            scores.sub_(self.queries.half[shifted, None]).sub_(self.gallery.half)
        if self.question.leave_one_out:
            scores[torch.arange(len(scores)), torch.arange(shifted.start, shifted.stop)] = -torch.inf
        return scores

    def ranks(self, rows: slice, entries: int) -> list[RelevantRanks]:
        """Of some rows, in parts of about `entries` relevant items."""
        question, scores = self.question, self.scores(rows).numpy()
        hide_ignored(self.kernel, question, rows, slice(0, len(question.gallery)), scores)
        step = max(1, entries // max(1, int((question.last[rows] - question.first[rows]).max())))
        parts = [slice(start, min(start + step, rows.stop)) for start in range(rows.start, rows.stop, step)]
        return [self.sorted(part, scores[part.start - rows.start : part.stop - rows.start]) for part in parts]

    def sorted(self, rows: slice, scores: Any) -> RelevantRanks:
        question = self.question
        first, last = question.first[rows], question.last[rows]
        over, upto = (np.empty(int((last - first).sum()) + 1, np.int64) for _ in range(2))
        counts = self.row_kernel.ranks_of_rows(scores, first, last, self.buckets, self.tolerance, over, upto)
        total = int(counts.sum())
        return RelevantRanks(question.queries[rows], counts, counts, question.size[rows], over[:total], upto[:total])


def sorted_ahead(
    sorter: RowSorter, pool: ThreadPoolExecutor, threads: int, entries: int
) -> Iterator[list[RelevantRanks]]:
    """Products of rows one after the other; while the caller uses one, the threads are busy with the next."""
    waiting: deque[Future[list[RelevantRanks]]] = deque()
    for rows in sorter.pieces():
        waiting.append(pool.submit(sorter.ranks, rows, entries))
        if len(waiting) > threads:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
