"""The question an evaluation asks: which gallery items are relevant to which query, and which are left out.

Queries and gallery are put in an order in which the relevant items of a query are neighbours in memory, and queries
with similarly many relevant items follow each other.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from lookalike.errors import check
from lookalike.evaluation.engine.relevance import Grades, Relevance
from lookalike.evaluation.inputs import Codes
from lookalike.labels import encode, values_of


@dataclass(frozen=True)
class Ignore:
    """Gallery items that a query must not see: those of its own group, or those marked in a mask queries × gallery."""

    query_groups: Codes | None = None
    gallery_groups: Codes | None = None
    mask: NDArray[np.bool_] | None = None

    def hides(self, query: Codes, item: Codes) -> NDArray[np.bool_]:
        """Whether a query ignores an item, element by element (shapes are broadcast)."""
        if self.mask is not None:
            return self.mask[query, item]
        assert self.query_groups is not None
        assert self.gallery_groups is not None
        hidden: NDArray[np.bool_] = self.query_groups[query] == self.gallery_groups[item]
        return hidden

    def count(self, leave_one_out: bool) -> Codes:
        """How many items each query ignores; under `leave_one_out` the query itself is not counted."""
        if self.mask is not None:
            itself = np.diagonal(self.mask) if leave_one_out else 0
            ignored: Codes = self.mask.sum(1) - itself
            return ignored
        assert self.query_groups is not None
        assert self.gallery_groups is not None
        groups = int(max(self.query_groups.max(), self.gallery_groups.max())) + 1
        sizes: Codes = np.bincount(self.gallery_groups, minlength=groups)[self.query_groups] - int(leave_one_out)
        return sizes


def read_ignore(ignore: Any, queries: int, gallery: int, leave_one_out: bool) -> Ignore | None:
    """`ignore` as users write it: groups, (query groups, gallery groups), or a mask queries × gallery."""
    if ignore is None:
        return None
    array = ignore.detach().cpu().numpy() if isinstance(ignore, Tensor) else ignore
    if isinstance(array, np.ndarray) and array.ndim == 2:
        check(array.dtype == np.bool_, f"an ignore mask must be boolean, not {array.dtype}")
        sizes = (queries, gallery)
        check(array.shape == sizes, f"the ignore mask is {array.shape}, queries × gallery are {sizes}")
        return Ignore(mask=array)
    if leave_one_out:
        (codes,), _ = encode(values_of(array, "ignore groups", queries))
        return Ignore(codes, codes)
    pair = isinstance(ignore, tuple) and len(ignore) == 2
    check(pair, "with a gallery, ignore must be (query groups, gallery groups) or a boolean mask queries × gallery")
    left = values_of(ignore[0], "ignore groups of the queries", queries)
    right = values_of(ignore[1], "ignore groups of the gallery", gallery)
    (query_groups, gallery_groups), _ = encode(left, right)
    return Ignore(query_groups, gallery_groups)


def with_unknown(ignore: Ignore | None, unknown: NDArray[np.bool_] | None) -> Ignore | None:
    """Besides what the user hides, the pairs that were not judged."""
    if unknown is None:
        return ignore
    if ignore is None:
        return Ignore(mask=unknown)
    rows, columns = (np.arange(size) for size in unknown.shape)
    return Ignore(mask=unknown | ignore.hides(rows[:, None], columns))


@dataclass(frozen=True)
class RankingTask:
    """Query k is row `queries[k]` of the user's; its class is the items first[k] … last[k] − 1 of `gallery`.

    Where an item has no class, `relevance` lists what is relevant, and last[k] − first[k] is how much that is.
    """

    queries: Codes
    gallery: Codes
    first: Codes
    last: Codes
    leave_one_out: bool  # query k is the gallery item at position `offset + k`
    offset: int
    size: Codes  # how many gallery items each query may see
    ignore: Ignore | None
    relevance: Relevance | None = None

    def columns(self, rows: slice) -> tuple[Codes, Grades | None]:
        """The positions of each query's relevant items in the gallery, ascending, −1 where it has no more; their gains.

        Under leave-one-out the query itself is among them.
        """
        return self.columns_of(self.queries[rows])

    def columns_of(self, queries: Codes) -> tuple[Codes, Grades | None]:
        """The same for any rows of the user's."""
        assert self.relevance is not None
        position = np.empty(len(self.gallery), np.int64)
        position[self.gallery] = np.arange(len(self.gallery))
        place, item, grade = self.relevance.relevant(queries)
        keys = place * len(self.gallery) + position[item]  # by query, then by position
        order = None if grade is None else np.argsort(keys)
        keys = np.sort(keys) if order is None else keys[order]
        counts = np.bincount(place, minlength=len(queries))
        filled = np.arange(int(counts.max(initial=0))) < counts[:, None]
        columns = np.full(filled.shape, -1)
        columns[filled] = keys % len(self.gallery)
        if grade is None or order is None:
            return columns, None
        grades = np.zeros(columns.shape)
        grades[filled] = grade[order]
        return columns, grades

    def shifted(self, rows: slice) -> slice:
        """Rows in the queries' space; under leave-one-out that is the gallery, where classes of one come first."""
        shift = self.offset if self.leave_one_out else 0
        return slice(rows.start + shift, rows.stop + shift)

    @property
    def symmetric(self) -> bool:
        """Whether the score block of rows I and columns J also answers the queries J."""
        mutual = self.relevance is None or self.relevance.symmetric
        return self.leave_one_out and mutual and (self.ignore is None or self.ignore.mask is None)


def ask(
    query_codes: Codes, gallery_codes: Codes | None, ignore: Ignore | None, relevance: Relevance | None = None
) -> RankingTask:
    """The order of queries and gallery. Queries whose class is not in the gallery are left out."""
    leave_one_out = gallery_codes is None
    if relevance is not None:
        return _ask_lists(relevance, leave_one_out, ignore)
    codes = query_codes if gallery_codes is None else gallery_codes
    classes = int(max(query_codes.max(), codes.max())) + 1
    sizes = np.bincount(codes, minlength=classes)
    gallery = np.lexsort((codes, sizes[codes]))
    begins = np.zeros(classes, np.int64)
    begins[codes[gallery][::-1]] = np.arange(len(codes))[::-1]  # the last write wins: the first position of each class
    queries = gallery if leave_one_out else np.lexsort((query_codes, sizes[query_codes]))
    offset = int(np.searchsorted(sizes[query_codes[queries]], 2 if leave_one_out else 1))
    queries = queries[offset:]
    first = begins[query_codes[queries]]
    size = np.full(len(query_codes), len(codes) - int(leave_one_out), np.int64)
    if ignore is not None:
        size -= ignore.count(leave_one_out)
    return RankingTask(
        queries, gallery, first, first + sizes[query_codes[queries]], leave_one_out, offset, size[queries], ignore
    )


def _ask_lists(relevance: Relevance, leave_one_out: bool, ignore: Ignore | None) -> RankingTask:
    """Queries with similarly many relevant items follow each other; those without any are left out."""
    counts = relevance.counts()
    order = np.argsort(counts, kind="stable")
    offset = int(np.searchsorted(counts[order], 2 if leave_one_out else 1))
    queries = order[offset:]
    gallery = order if leave_one_out else np.arange(relevance.gallery)
    size = np.full(len(counts), relevance.gallery - int(leave_one_out), np.int64)
    if ignore is not None:
        size -= ignore.count(leave_one_out)
    first = np.zeros(len(queries), np.int64)
    return RankingTask(
        queries, gallery, first, counts[queries], leave_one_out, offset, size[queries], ignore, relevance
    )
