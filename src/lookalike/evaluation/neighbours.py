"""Nearest neighbours as a list, exactly and in a fixed order: higher scores first, among equal scores the lower index.

Candidates come from float32 score blocks, a few more than k; their order is decided in float64. A row in which
float32 cannot tell whether a candidate was missed (many ties) is scored in float64 as a whole.
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Integer
from torch import Tensor

from lookalike.errors import check
from lookalike.evaluation.engine.space import Space, place
from lookalike.evaluation.inputs import Items, Vectors, as_vectors
from lookalike.evaluation.sets import unit_of
from lookalike.geometry import Geometry, check_geometry
from lookalike.progress import Progress

SPARE = 32  # candidates beyond k, so that ties at the end of the list rarely need float64
ROWS, COLUMNS = 1024, 8192


class Neighbours(NamedTuple):
    """Per query the gallery rows of its nearest neighbours, the nearest first, and their scores.

    The score is the cosine on the sphere, else −‖a − b‖²/2 (without normalisation in units of the longest vector).
    """

    indices: Integer[Tensor, "n k"]
    scores: Float[Tensor, "n k"]


def neighbours(
    queries: Vectors, gallery: Items | None, k: int, *, normalise: Geometry = "sphere", progress: Progress | None = None
) -> Neighbours:
    """The `k` nearest gallery items of each of `queries` (all, if there are fewer). `gallery=None`: the other queries.

    `normalise`: where vectors are compared: "sphere", "ball" or "none"; `progress(done, total)` is called.

    >>> neighbours(torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1]]), None, 1).indices.flatten().tolist()
    [2, 2, 0]
    """
    check(k > 0, f"k must be at least 1, not {k}")
    geometry = check_geometry(normalise)
    vectors = as_vectors(queries, "queries")
    items = vectors if gallery is None else as_vectors(gallery, "gallery").to(vectors.device)
    wide = (items.shape[1], vectors.shape[1])
    check(wide[0] == wide[1], f"the gallery has {wide[0]} dimensions, the queries {wide[1]}: they must agree")
    check(
        gallery is not None or len(items) > 1, "one embedding alone has no neighbours: give at least two, or a gallery"
    )
    unit = unit_of(geometry, vectors, items)
    right = place(items, np.arange(len(items)), geometry, unit)
    left = right if gallery is None else place(vectors, np.arange(len(vectors)), geometry, unit)
    number = min(k, len(items) - (gallery is None))
    return search(left, right, number, leave_one_out=gallery is None, progress=progress)


def search(
    left: Space,
    right: Space,
    k: int,
    leave_one_out: bool,
    progress: Progress | None = None,
    block: tuple[int, int] = (ROWS, COLUMNS),
    spare: int = SPARE,
) -> Neighbours:
    """`neighbours` of placed vectors, in `block`s of rows and columns, with `spare` more candidates than needed."""
    indices = torch.empty(len(left.vectors), k, dtype=torch.int64)
    scores = torch.empty(len(left.vectors), k, dtype=torch.float64)
    total = len(left.vectors)
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        for start in range(0, total, block[0]):
            rows = slice(start, min(start + block[0], total))
            indices[rows], scores[rows] = nearest(left, rows, right, k, leave_one_out, block[1], spare)
            if progress is not None:
                progress(rows.stop, total)
    finally:
        torch.set_float32_matmul_precision(precision)
    return Neighbours(indices, scores)


def nearest(
    left: Space, rows: slice, right: Space, k: int, leave_one_out: bool, step: int, spare: int
) -> tuple[Tensor, Tensor]:
    values, candidates = shortlist(left, rows, right, min(k + spare, len(right.vectors)), leave_one_out, step)
    exact = exact_scores(left, rows, right, candidates)
    exact[values == -torch.inf] = -torch.inf
    indices, scores = ordered(candidates, exact, k)
    if candidates.shape[1] < len(right.vectors):
        # every item left out has a float32 score of at most the last candidate's
        unsure = values[:, -1].double() + right.rounding >= scores[:, -1] - right.rounding
        for row in unsure.nonzero().flatten().tolist():
            indices[row], scores[row] = whole_row(left, rows.start + row, right, k, leave_one_out)
    return indices, scores


def shortlist(
    left: Space, rows: slice, right: Space, number: int, leave_one_out: bool, step: int
) -> tuple[Tensor, Tensor]:
    """The `number` items with the highest float32 scores, from blocks of `step` columns."""
    device, height = right.vectors.device, rows.stop - rows.start
    best = torch.empty(height, 0, device=device)
    where = torch.empty(height, 0, dtype=torch.int64, device=device)
    for start in range(0, len(right.vectors), step):
        columns = slice(start, min(start + step, len(right.vectors)))
        scores = left.block(rows, right, columns, torch.empty(height, columns.stop - start, device=device))
        if leave_one_out:
            hide_self(scores, rows, columns)
        values, places = scores.topk(min(number, scores.shape[1]), dim=1, sorted=False)
        best, where = torch.cat((best, values), 1), torch.cat((where, places + start), 1)
        if best.shape[1] > number:
            best, positions = best.topk(number, dim=1, sorted=False)
            where = where.gather(1, positions)
    best, positions = best.sort(dim=1, descending=True)
    return best.cpu(), where.gather(1, positions).cpu()


def hide_self(scores: Tensor, rows: slice, columns: slice) -> None:
    """Remove each query from its own gallery, by index."""
    first, last = max(rows.start, columns.start), min(rows.stop, columns.stop)
    if first < last:
        index = torch.arange(first, last, device=scores.device)
        scores[index - rows.start, index - columns.start] = -torch.inf


def exact_scores(left: Space, rows: slice, right: Space, candidates: Tensor) -> Tensor:
    """Float64 scores of each row with its candidates; equal vectors get equal scores, bit by bit."""
    step, scores = max(1, 2**23 // (candidates.shape[1] * right.vectors.shape[1])), []
    where = candidates.to(right.vectors.device)
    precise = right.half.device
    for start in range(0, len(candidates), step):
        query = left.vectors[rows][start : start + step].to(precise).double()
        item = right.vectors[where[start : start + step]].to(precise).double()
        score = (query[:, None] * item).sum(2) - left.half[rows][start : start + step, None]
        scores.append(score - right.half[where[start : start + step].to(precise)])
    return torch.cat(scores).cpu()


def ordered(candidates: Tensor, exact: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The first k by falling score, then rising index: two stable sorts."""
    rising, by_index = candidates.sort(dim=1)
    scores, by_score = exact.gather(1, by_index).sort(dim=1, descending=True, stable=True)
    return rising.gather(1, by_score)[:, :k], scores[:, :k]


def whole_row(left: Space, row: int, right: Space, k: int, leave_one_out: bool) -> tuple[Tensor, Tensor]:
    everything = torch.arange(len(right.vectors))[None]
    exact = exact_scores(left, slice(row, row + 1), right, everything)
    if leave_one_out:
        exact[0, row] = -torch.inf
    indices, scores = ordered(everything, exact, k)
    return indices[0], scores[0]
