"""Relevance beyond one class per item [architecture supervision]: by shared labels, or by a matrix queries × gallery.

The gallery is listed by label; what is relevant to a query is what its labels list, each item once. A matrix is the
same thing with one label per query, which lists its row. So memory grows with the lists, not with queries × gallery.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from lookalike.errors import check
from lookalike.evaluation.inputs import Codes
from lookalike.label_sets import EMPTY, LabelSets

ENTRIES = 2**20  # listed items looked at together

Grades = NDArray[np.float64]


@dataclass(frozen=True)
class Lists:
    """Lists of numbers, one after the other: list k is `entries[ends[k] : ends[k + 1]]`."""

    entries: Codes
    ends: Codes

    @staticmethod
    def of(owner: Codes, entry: Codes, lists: int) -> "Lists":
        """From pairs (list, entry); the entries of a list keep their order."""
        order = np.argsort(owner, kind="stable")
        return Lists(entry[order], np.r_[0, np.cumsum(np.bincount(owner, minlength=lists))].astype(np.int64))

    def sizes(self, lists: Codes) -> Codes:
        return self.ends[lists + 1] - self.ends[lists]

    def of_lists(self, lists: Codes) -> tuple[Codes, Codes]:
        """The entries of some lists, and the place in `lists` that each comes from.

        >>> Lists(np.array([7, 8, 9]), np.array([0, 2, 3])).of_lists(np.array([1, 0]))
        (array([0, 1, 1]), array([9, 7, 8]))
        """
        sizes = self.sizes(lists)
        place = np.repeat(np.arange(len(lists)), sizes)
        within = np.arange(len(place)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return place, self.entries[self.ends[lists][place] + within]


@dataclass(frozen=True)
class Relevance:
    """`labels` lists the labels of every query, `items` the gallery rows of every label.

    Under leave-one-out a query is listed among its own items, as it is among those of its class. `grades` are gains for
    ndcg: a matrix, or the number of shared labels (`graded`).
    """

    labels: Lists
    items: Lists
    gallery: int
    symmetric: bool  # whether relevance is mutual
    graded: bool = False
    grades: Grades | None = field(default=None, repr=False)
    distinct: bool = False  # no query lists an item twice: the rows of a matrix

    def relevant(self, queries: Codes) -> tuple[Codes, Codes, Grades | None]:
        """(place in `queries`, gallery row, gain) of every relevant item, by place and row."""
        place, label = self.labels.of_lists(queries)
        which, item = self.items.of_lists(label)
        if self.distinct:
            place = place[which]
            return place, item, None if self.grades is None else self.grades[queries[place], item]
        keys, times = np.unique(place[which] * self.gallery + item, return_counts=True)
        place, item = keys // self.gallery, keys % self.gallery
        return place, item, times.astype(np.float64) if self.graded else None

    def counts(self) -> Codes:
        """How many items are relevant to each query, itself among them under leave-one-out."""
        if self.distinct:
            return np.diff(self.items.ends)
        counts = np.zeros(len(self.labels.ends) - 1, np.int64)
        for queries in self._portions():
            counts[queries] = np.bincount(self.relevant(queries)[0], minlength=len(queries))
        return counts

    def _portions(self) -> Iterator[Codes]:
        everyone = np.arange(len(self.labels.ends) - 1)
        place, label = self.labels.of_lists(everyone)
        listed = np.cumsum(np.bincount(place, weights=self.items.sizes(label), minlength=len(everyone)))
        portion = (listed // ENTRIES).astype(np.int64)
        yield from (everyone[portion == number] for number in np.unique(portion))


def by_labels(queries: LabelSets, gallery: LabelSets | None, graded: bool) -> Relevance:
    """An item is relevant where it shares a label with the query."""
    items = queries if gallery is None else gallery
    columns = [sets.numbers.cpu().numpy() for sets in (queries, items)]
    labels = 1 + max(int(numbers.max()) for numbers in columns)
    (query, label), (item, listed) = (_entries(numbers) for numbers in columns)
    return Relevance(Lists.of(query, label, len(queries)), Lists.of(listed, item, labels), len(items), True, graded)


def _entries(numbers: Codes) -> tuple[Codes, Codes]:
    row, slot = np.nonzero(numbers != EMPTY)
    return row, numbers[row, slot]


def by_matrix(relevance: Any, queries: int, gallery: int, leave_one_out: bool) -> Relevance:
    """From a boolean matrix queries × gallery, or one of gains, in which 0 means irrelevant."""
    array = relevance.detach().cpu().numpy() if isinstance(relevance, Tensor) else np.asarray(relevance)
    sizes = (queries, gallery)
    check(array.shape == sizes, f"the relevance matrix is {array.shape}, queries × gallery are {sizes}")
    check(array.dtype.kind in "bif", f"the relevance matrix must hold booleans or numbers, not {array.dtype}")
    finite = array.dtype.kind != "f" or bool(np.isfinite(array).all())
    check(
        finite and not (array < 0).any(), "the relevance matrix holds negative numbers, NaN or infinity: give gains ≥ 0"
    )
    some = array > 0
    if leave_one_out:
        np.fill_diagonal(some, True)
    _, item = np.nonzero(some)
    rows = Lists(np.arange(queries), np.arange(queries + 1))
    graded = array.dtype != np.bool_
    items = Lists(item, np.r_[0, np.cumsum(some.sum(1))])  # which `nonzero` lists row by row
    grades = array.astype(np.float64) if graded else None
    return Relevance(rows, items, gallery, False, graded, grades, distinct=True)
