"""Curves over all pairs [math F.10, F.14]: is a score high enough to say "same class"? PR, ROC, TAR@FAR.

All ordered (query, gallery) pairs but a sample with itself; leave-one-out visits each unordered pair once, which gives
the same curve. Up to ten million pairs the curves are exact; beyond, scores are counted in bins as they are computed,
and no list of pairs ever exists.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookalike.errors import UserError
from lookalike.evaluation.engine.panel import marked
from lookalike.evaluation.engine.question import RankingTask, ask, read_ignore, with_unknown
from lookalike.evaluation.engine.ranks import Values
from lookalike.evaluation.engine.space import Space
from lookalike.evaluation.inputs import Items, Vectors
from lookalike.evaluation.sets import Sets, read_sets
from lookalike.geometry import Geometry, check_geometry

BLOCK = 1024
EXACT_PAIRS = 10**7
BINS = 1000
Likeness = Callable[[slice], Callable[[slice], Tensor]]
SHOWN = 1000  # points of a curve in a result; areas and rates use all


@dataclass(frozen=True)
class Tally:
    """Numbers of pairs of the `same` class and of `other` pairs that score at least `threshold`, thresholds falling."""

    threshold: Values
    same: Values
    other: Values

    @property
    def recall(self) -> Values:
        return np.asarray(self.same / self.same[-1], np.float64)

    @property
    def far(self) -> Values:
        return np.asarray(self.other / self.other[-1], np.float64)

    @property
    def precision(self) -> Values:
        return self.same / (self.same + self.other)


def tally_pairs(
    embeddings: Vectors,
    labels: Any,
    *,
    gallery: Items | None = None,
    gallery_labels: Any = None,
    normalise: Geometry = "sphere",
    ignore: Any = None,
) -> Tally:
    """The counts behind the PR and ROC curves of `evaluate`, at every threshold.

    `embeddings`, `labels`, `gallery`, `gallery_labels`, `normalise` and `ignore` are those of `evaluate`.

    `evaluate(metrics="pr")` keeps a thousand points of them. Where one pair in thousands is of the same class, few of
    those lie on the part of the curve that matters.

    >>> vectors = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
    >>> tally_pairs(vectors, ["ant", "ant", "bee"]).precision.round(2).tolist()
    [1.0, 0.5, 0.33]
    """
    sets = read_sets(embeddings, labels, gallery, gallery_labels, check_geometry(normalise))
    hidden = with_unknown(read_ignore(ignore, len(sets.queries), sets.gallery_size, gallery is None), sets.unknown)
    return tally_sets(sets, ask(sets.query_codes, sets.gallery_codes, hidden, sets.relevance))


def tally_sets(sets: Sets, question: RankingTask) -> Tally:
    """`tally_pairs` for sets that have been read."""
    everyone = question.gallery if question.leave_one_out else np.arange(len(sets.queries))
    # the pairs of a query without a relevant item count as well
    complete = replace(question, queries=everyone, offset=0)
    gallery = sets.space(question.gallery, of_gallery=True)
    queries = gallery if question.leave_one_out else sets.space(everyone, of_gallery=False)
    blocks = pairs(complete, _likeness(sets, complete, gallery.vectors.device), queries, gallery)
    return tally(blocks, len(everyone) * len(question.gallery), -1.0 if gallery.spherical else -2.0)


def _likeness(sets: Sets, question: RankingTask, device: torch.device) -> Likeness:
    """Whether pairs are of one class, for rows of queries, block of the gallery by block."""
    if question.relevance is not None:

        def listed(rows: slice) -> Callable[[slice], Tensor]:
            columns, _ = question.columns(rows)
            return lambda block: torch.from_numpy(marked(columns, block)).to(device)

        return listed
    items = sets.query_codes if sets.gallery_codes is None else sets.gallery_codes
    left, right = (
        torch.from_numpy(codes).to(device) for codes in (sets.query_codes[question.queries], items[question.gallery])
    )
    return lambda rows: lambda block: left[rows, None] == right[block]


def pairs(question: RankingTask, likeness: Likeness, queries: Space, gallery: Space) -> Iterator[tuple[Tensor, Tensor]]:
    """Scores and "same class" of all pairs, block by block."""
    triangle, height, width = question.symmetric, len(queries.vectors), len(gallery.vectors)
    for i in range(0, height, BLOCK):
        rows = slice(i, min(i + BLOCK, height))
        alike = likeness(rows)
        for j in range(i if triangle else 0, width, BLOCK):
            columns = slice(j, min(j + BLOCK, width))
            same = alike(columns)
            scores = torch.empty(same.shape, device=same.device)
            queries.block(rows, gallery, columns, scores)
            counted = visible(question, rows, columns, same)
            yield (scores.flatten(), same.flatten()) if counted is None else (scores[counted], same[counted])


def visible(question: RankingTask, rows: slice, columns: slice, same: Tensor) -> Tensor | None:
    """Pairs that count; None: all of the block."""
    touches = question.leave_one_out and rows.start < columns.stop and columns.start < rows.stop
    if question.ignore is None and not touches:
        return None
    counted = torch.ones_like(same)
    if touches and question.symmetric:
        counted = torch.ones_like(same).triu(1 - (columns.start - rows.start))
    elif touches:
        counted = ~torch.eye(len(same), same.shape[1], dtype=torch.bool, device=same.device)
    if question.ignore is not None:
        everyone = question.gallery if question.leave_one_out else question.queries
        hidden = question.ignore.hides(everyone[rows][:, None], question.gallery[columns])
        counted &= ~torch.from_numpy(hidden).to(same.device)
    return counted


def tally(blocks: Iterator[tuple[Tensor, Tensor]], number: int, lowest: float) -> Tally:
    """Counts the pairs, exactly if there are at most ten million; scores lie between `lowest` and lowest + 2."""
    exact = number <= EXACT_PAIRS
    result = _exact(blocks) if exact else _binned(blocks, lowest)
    if not result.same[-1] or not result.other[-1]:
        raise UserError("curves over pairs need pairs of the same class and pairs of different classes")
    return result


def _exact(blocks: Iterator[tuple[Tensor, Tensor]]) -> Tally:
    parts = [(scores.cpu().numpy(), same.cpu().numpy()) for scores, same in blocks]
    scores, same = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    order = np.argsort(-scores, kind="stable")
    scores, same = scores[order], same[order]
    last = np.r_[np.flatnonzero(np.diff(scores)), len(scores) - 1]  # of each run of equal scores
    hits = np.cumsum(same)[last].astype(np.float64)
    return Tally(scores[last].astype(np.float64), hits, last + 1 - hits)


def _binned(blocks: Iterator[tuple[Tensor, Tensor]], lowest: float) -> Tally:
    counts = np.zeros((2, BINS))
    for scores, same in blocks:
        everything = torch.histc(scores.clamp_(lowest, lowest + 2), BINS, lowest, lowest + 2)
        relevant = torch.histc(scores[same], BINS, lowest, lowest + 2)
        counts[0] += relevant.cpu().numpy()
        counts[1] += (everything - relevant).cpu().numpy()
    edges = np.linspace(lowest, lowest + 2, BINS + 1)[:-1]
    same, other = np.cumsum(counts[:, ::-1], axis=1)
    used = same + other > 0
    return Tally(edges[::-1][used], same[used], other[used])


def roc_area(tally: Tally) -> float:
    return float(np.trapezoid(np.r_[0, tally.recall], np.r_[0, tally.far]))


def pr_area(tally: Tally) -> float:
    """By trapezoids, from recall 0 with precision 1; the average precision is a little lower."""
    return float(np.trapezoid(np.r_[1, tally.precision], np.r_[0, tally.recall]))


def average_precision(tally: Tally) -> float:
    """The mean precision at the ranks of same-class pairs."""
    return float((np.diff(tally.recall, prepend=0.0) * tally.precision).sum())


def tar(tally: Tally, far: float) -> float:
    """The share of same-class pairs accepted at the lowest threshold that accepts at most `far` of the others."""
    place = int(np.searchsorted(tally.far, far, side="right")) - 1
    return float(tally.recall[place]) if place >= 0 else 0.0


def thinned(tally: Tally) -> Tally:
    """At most a thousand points of the curve, both ends among them."""
    keep = np.unique(np.linspace(0, len(tally.same) - 1, min(SHOWN, len(tally.same))).round().astype(np.int64))
    return Tally(tally.threshold[keep], tally.same[keep], tally.other[keep])
