"""Counting in torch operations, for CUDA and MPS: the same blocks, edges and float64 comparison as on the CPU."""

import numpy as np
import torch
from torch import Tensor

from lookalike.evaluation.engine.panel import BLOCKS, Blocks, Listed, Panel, clean, marked
from lookalike.evaluation.engine.question import RankingTask
from lookalike.evaluation.engine.space import Space

GATHERED = 2**24  # float64 numbers gathered at once for the relevant scores


class DeviceCounter:
    """Like `counting.Counter`. In a panel, `low`, `high` and `relevant` are queries × items here, the lowest first."""

    def __init__(
        self,
        question: RankingTask,
        queries: Space,
        gallery: Space,
        tolerance: float,
        most: int | None,
        blocks: Blocks = BLOCKS,
    ) -> None:
        self.question, self.queries, self.gallery, self.tolerance = question, queries, gallery, tolerance
        self.most, self.blocks = most, blocks
        self.device = gallery.vectors.device
        self.precise = gallery.half.device  # where float64 exists: MPS has none

    def panel(self, rows: slice) -> Panel:
        question = self.question
        first, last = question.first[rows], question.last[rows]
        listed = None if question.relevance is None else Listed(*question.columns(rows))
        column = first[:, None] + np.arange(int((last - first).max())) if listed is None else listed.columns
        inside = (column < last[:, None]) if listed is None else column >= 0
        shifted = question.shifted(rows)
        row = np.arange(shifted.start, shifted.stop)[:, None]
        scores = np.full(column.shape, -np.inf)
        scores[inside] = self.exact(np.broadcast_to(row, column.shape)[inside], column[inside]).cpu().numpy()
        totals, relevant = clean(question, rows, scores, self.tolerance, self.most, listed)
        counts = np.minimum(totals, len(relevant))
        rising = torch.from_numpy(np.sort(relevant.T.copy(), axis=1)).to(self.precise)
        band = self.tolerance + self.queries.rounding
        low, high = (rising - band).float().to(self.device), (rising + band).float().to(self.device)
        none = torch.zeros(len(relevant), len(counts), dtype=torch.int64, device=self.precise)
        return Panel(rows, totals, counts, rising, low, high, none, none.clone(), listed=listed)

    def exact(self, rows: np.ndarray, columns: np.ndarray) -> Tensor:
        """Float64 scores of pairs (position in the queries' space, position in the gallery)."""
        parts, step = [], max(1, GATHERED // self.gallery.vectors.shape[1])
        for start in range(0, len(rows), step):
            i = torch.from_numpy(rows[start : start + step].copy()).to(self.precise)
            j = torch.from_numpy(columns[start : start + step].copy()).to(self.precise)
            parts.append(self.scores_at(i, j))
        return torch.cat(parts)

    def scores_at(self, i: Tensor, j: Tensor) -> Tensor:
        products = (self.queries.exact(i) * self.gallery.exact(j)).sum(1)
        return products - self.queries.half[i] - self.gallery.half[j]

    def count(self, panel: Panel, columns: slice, other: Panel | None, buffer: Tensor) -> None:
        """Score the panel against some gallery columns; if those are another panel's rows, count for it as well."""
        rows = self.question.shifted(panel.rows)
        height, width = rows.stop - rows.start, columns.stop - columns.start
        scores = self.queries.block(rows, self.gallery, columns, buffer[: height * width].view(height, width))
        scores.masked_fill_(self.hidden(panel, columns), -torch.inf)
        self.sweep(panel, scores, columns)
        if other is not None:
            self.sweep(other, scores.T.contiguous(), rows)

    def hidden(self, panel: Panel, columns: slice) -> Tensor:
        """The query's own class (relevant items and itself) and what it ignores."""
        question = self.question
        position = torch.arange(columns.start, columns.stop, device=self.device)
        first = torch.from_numpy(question.first[panel.rows]).to(self.device)[:, None]
        last = torch.from_numpy(question.last[panel.rows]).to(self.device)[:, None]
        hidden = (position >= first) & (position < last)
        if panel.listed is not None:
            hidden = torch.from_numpy(marked(panel.listed.columns, columns)).to(self.device)
        if question.ignore is not None:
            ignored = question.ignore.hides(question.queries[panel.rows][:, None], question.gallery[columns])
            hidden |= torch.from_numpy(ignored).to(self.device)
        return hidden

    def sweep(self, panel: Panel, scores: Tensor, columns: slice) -> None:
        """Every score passes the edges below it; those between the two edges of an item are settled in float64."""
        at_least = torch.searchsorted(panel.low, scores, right=True)
        above = torch.searchsorted(panel.high, scores)
        unclear = at_least - above
        if int(unclear.sum()) > self.blocks.near:
            self.sweep_exactly(panel, columns)
            return
        over = self.passed(panel, above)
        upto = over.clone()
        i, j = unclear.nonzero(as_tuple=True)
        if len(i):
            self.settle(panel, columns, (i, j, above[i, j], unclear[i, j]), over, upto)
        panel.add(over, upto)

    def settle(self, panel: Panel, columns: slice, near: tuple[Tensor, ...], over: Tensor, upto: Tensor) -> None:
        i, j, start, number = (part.to(self.precise) for part in near)
        score = self.scores_at(i + self.question.shifted(panel.rows).start, j + columns.start).repeat_interleave(number)
        row = i.repeat_interleave(number)
        within = torch.arange(len(row), device=self.precise) - (number.cumsum(0) - number).repeat_interleave(number)
        item = start.repeat_interleave(number) + within
        difference = score - panel.relevant[row, item]
        falling = torch.from_numpy(panel.counts).to(self.precise)[row] - 1 - item
        for counts, passes in ((over, difference > self.tolerance), (upto, difference >= -self.tolerance)):
            counts.index_put_((falling, row), passes.to(counts.dtype), accumulate=True)

    def sweep_exactly(self, panel: Panel, columns: slice) -> None:
        """The block in float64, for embeddings so close together that float32 cannot order them."""
        rows = self.question.shifted(panel.rows)
        scores = self.queries.exact_block(rows, self.gallery, columns)
        scores.masked_fill_(self.hidden(panel, columns).to(self.precise), -torch.inf)
        above = torch.searchsorted(panel.relevant + self.tolerance, scores)
        at_least = torch.searchsorted(panel.relevant - self.tolerance, scores, right=True)
        panel.add(self.passed(panel, above), self.passed(panel, at_least))

    def passed(self, panel: Panel, edges: Tensor) -> Tensor:
        """From how many edges each score passed: how many scores passed each item (items × queries, the best first)."""
        edges = edges.to(self.precise)
        height, items = panel.relevant.shape
        tally = torch.zeros(height, items + 1, dtype=torch.int64, device=self.precise)
        tally.scatter_add_(1, edges, torch.ones_like(edges))
        beyond = tally.flip(1).cumsum(1).flip(1)[:, 1:]
        counts = torch.from_numpy(panel.counts).to(self.precise)[:, None]
        falling = (counts - 1 - torch.arange(items, device=self.precise)).clamp(min=0)
        return beyond.gather(1, falling).T.contiguous()
