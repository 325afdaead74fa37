"""Counting on the CPU: one score block, one pass over its rows and one over its columns."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookalike.evaluation.engine.panel import BLOCKS, Blocks, Listed, Panel, clean, portions
from lookalike.evaluation.engine.question import RankingTask
from lookalike.evaluation.engine.space import Space

SLOTS, MOST_SLOTS = 16, 2**16  # of the lookup table per relevant item, and at most


class Counter:
    """Counts, for the relevant items of a panel of queries, the irrelevant items above them."""

    def __init__(
        self,
        question: RankingTask,
        queries: Space,
        gallery: Space,
        tolerance: float,
        most: int | None,
        blocks: Blocks = BLOCKS,
    ) -> None:
        from lookalike.evaluation.engine import kernel

        self.kernel: Any = kernel
        if question.relevance is not None:
            from lookalike.evaluation.engine import listed_kernel

            self.listed_kernel: Any = listed_kernel
        self.question, self.queries, self.gallery = question, queries, gallery
        self.tolerance, self.most, self.blocks = tolerance, most, blocks

    def panel(self, rows: slice) -> Panel:
        question = self.question
        listed = None if question.relevance is None else Listed(*question.columns(rows))
        parts = [
            clean(question, part, self.own(part, listed), self.tolerance, self.most, listed)
            for part in portions(question, rows, self.blocks)
        ]
        totals = np.concatenate([part[0] for part in parts])
        relevant = np.full((max(len(part[1]) for part in parts), len(totals)), np.inf)
        place = 0
        for _, best in parts:
            relevant[: len(best), place : place + best.shape[1]] = best
            place += best.shape[1]
        counts = np.minimum(totals, len(relevant))
        if len(relevant) > self.blocks.few:
            relevant = np.asfortranarray(relevant)  # many items are read query by query
        band = self.tolerance + self.queries.rounding
        low, high = (relevant - band).astype(np.float32), (relevant + band).astype(np.float32)
        none = np.zeros_like(relevant, np.int32)
        tables = self.tables(low, high, counts)
        return Panel(rows, totals, counts, relevant, low, high, none, none.copy(order="K"), tables, listed)

    def own(self, rows: slice, listed: Listed | None) -> Any:
        """The float64 scores of each query's class or of the items listed for it, −∞ where there is none."""
        first, last = self.question.first[rows], self.question.last[rows]
        shifted = self.question.shifted(rows)
        if listed is None and int(last[0] - first[0]) >= self.blocks.wide and (first == first[0]).all():
            return self.queries.exact_block(shifted, self.gallery, slice(int(first[0]), int(last[0]))).numpy()
        scores = np.full((len(first), int((last - first).max())), -np.inf)
        sides = self.sides(shifted, slice(None))
        if listed is None:
            self.kernel.relevant_scores(*sides, first, last, scores)
        else:
            self.listed_kernel.listed_scores(*sides, listed.columns, scores)
        return scores

    def sides(self, rows: slice, columns: slice) -> tuple[Any, ...]:
        """What exact scores are made of: vectors, factors and half squares of queries and of the gallery."""
        parts = ((space.given, space.scale, space.half) for space in (self.queries, self.gallery))
        left, right = (
            [part.numpy()[some] for part in three] for three, some in zip(parts, (rows, columns), strict=True)
        )
        return tuple(part for both in zip(left, right, strict=True) for part in both)

    def tables(self, low: Any, high: Any, counts: Any) -> tuple[Any, ...]:
        """Per query a table from a score's slot to the number of items below it, and the slots' origin and scale."""
        items, queries = low.shape
        if items <= self.blocks.few:
            return ()
        kind = np.uint16 if items < 2**16 - 2 else np.int32
        tables = np.empty((queries, min(SLOTS * items, MOST_SLOTS)), kind)
        bases, scales = np.zeros(queries, np.float32), np.zeros(queries, np.float32)
        self.kernel.fill_tables(low, high, counts, tables, bases, scales)
        return tables, bases, scales

    def count(self, panel: Panel, columns: slice, other: Panel | None, buffer: Tensor) -> None:
        """Score the panel against some gallery columns; if those are another panel's rows, count for it as well."""
        if self.all_own(panel, columns):
            return
        height, width = panel.rows.stop - panel.rows.start, columns.stop - columns.start
        padded = -(-height // 8) * 8
        whole = buffer[: padded * width].view(padded, width)
        whole[height:] = -torch.inf
        self.queries.block(self.question.shifted(panel.rows), self.gallery, columns, whole[:height])
        scores = whole.numpy()
        self.hide(scores[:height], panel, columns)
        if not self.sweep(panel, scores[:height], columns, by_column=False):
            self.sweep_exactly(panel, columns)
        if other is not None and not self.sweep(other, scores, self.question.shifted(panel.rows), by_column=True):
            self.sweep_exactly(other, self.question.shifted(panel.rows))

    def all_own(self, panel: Panel, columns: slice) -> bool:
        """Whether the columns are of the class of every query in the panel: none of them is above anything."""
        first, last = self.question.first[panel.rows], self.question.last[panel.rows]
        return panel.listed is None and bool((first <= columns.start).all() and (last >= columns.stop).all())

    def hide(self, scores: Any, panel: Panel, columns: slice) -> None:
        """−∞ for the query's own class (relevant items and itself) and for what it ignores."""
        question = self.question
        if panel.listed is None:
            self.kernel.hide_classes(scores, question.first[panel.rows], question.last[panel.rows], columns.start)
        else:
            self.listed_kernel.fill_listed(scores, panel.listed.columns, columns.start, -np.inf)
        hide_ignored(self.kernel, question, panel.rows, columns, scores)

    def sweep(self, panel: Panel, scores: Any, columns: slice, by_column: bool) -> bool:
        """Count what float32 decides and settle the rest one by one; False: there is too much to settle."""
        above = np.zeros_like(panel.low, np.int32)
        near = np.empty((self.blocks.near, 4), np.int32)
        if panel.tables:
            rows = torch.from_numpy(scores).T.contiguous().numpy() if by_column else scores
            unclear = self.kernel.many_rows(rows, panel.low, panel.high, panel.counts, *panel.tables, above, near)
        else:
            count = self.kernel.few_columns if by_column else self.kernel.few_rows
            unclear = count(scores, panel.low, panel.high, above, near)
        if unclear < 0:
            return False
        pairs = near[:unclear]
        over, upto = above.copy(order="K"), above
        if len(pairs):
            sides = self.sides(self.question.shifted(panel.rows), columns)
            self.kernel.settle(*sides, pairs, panel.relevant, self.tolerance, over, upto)
        panel.add(over, upto)
        return True

    def sweep_exactly(self, panel: Panel, columns: slice) -> None:
        """The block in float64, for embeddings so close together that float32 cannot order them."""
        scores = self.queries.exact_block(self.question.shifted(panel.rows), self.gallery, columns).numpy()
        self.hide(scores, panel, columns)
        low, high = panel.relevant - self.tolerance, panel.relevant + self.tolerance
        over, upto = np.zeros_like(low, np.int32), np.zeros_like(low, np.int32)
        if len(panel.relevant) > self.blocks.few:
            self.kernel.many_exact(scores, high, panel.counts, over)
            self.kernel.many_exact(scores, np.nextafter(low, -np.inf), panel.counts, upto)
        else:
            self.kernel.few_exact(scores, low, high, upto, over)
        panel.add(over, upto)


def hide_ignored(kernel: Any, question: RankingTask, rows: slice, columns: slice, scores: Any) -> None:
    """−∞ for what the queries of some rows ignore."""
    ignore = question.ignore
    if ignore is None:
        return
    queries, items = question.queries[rows], question.gallery[columns]
    if ignore.query_groups is not None and ignore.gallery_groups is not None:
        kernel.hide_groups(scores, ignore.query_groups[queries], ignore.gallery_groups[items])
    else:
        scores[ignore.hides(queries[:, None], items)] = -np.inf
