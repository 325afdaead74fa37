"""The embeddings of an evaluation: queries, and a gallery unless the queries are their own."""

import math
import sys
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lookalike.errors import check
from lookalike.evaluation.engine.relevance import Relevance, by_labels, by_matrix
from lookalike.evaluation.engine.space import Space, largest_norm, place
from lookalike.evaluation.inputs import Codes, as_vectors
from lookalike.geometry import Geometry
from lookalike.label_sets import LabelSets, joint_sets, several
from lookalike.labels import encode, values_of

SHARED = "shared"  # relevance by the number of shared labels


@dataclass(frozen=True)
class Sets:
    """What is evaluated: queries, and a gallery unless the queries are their own (leave-one-out)."""

    queries: Tensor
    gallery: Tensor | None
    query_codes: Codes
    gallery_codes: Codes | None
    names: list[Hashable]  # of the classes
    geometry: Geometry
    unit: float
    relevance: Relevance | None = None  # None: items of the query's class; else codes and names are for display only
    unknown: NDArray[np.bool_] | None = None  # pairs of which nobody said whether they are alike
    labels: LabelSets | None = None  # of the queries, where they have several, or none

    def space(self, order: Codes, of_gallery: bool, unit: float | None = None) -> Space:
        vectors = self.gallery if of_gallery and self.gallery is not None else self.queries
        return place(vectors, order, self.geometry, self.unit if unit is None else unit)

    @property
    def gallery_size(self) -> int:
        return len(self.queries if self.gallery is None else self.gallery)

    @property
    def binary_unit(self) -> float:
        """The power of two from the unit up: dividing by it rounds nothing, so scores that are equal stay equal."""
        fraction, exponent = math.frexp(self.unit)
        return math.ldexp(1.0, min(exponent - (fraction == 0.5), sys.float_info.max_exp - 1))

    def everything(self) -> tuple[Tensor, Codes]:
        """Queries and gallery together, placed, in the user's order, with their classes."""
        queries = self.space(np.arange(len(self.queries)), of_gallery=False).vectors
        if self.gallery is None or self.gallery_codes is None:
            return queries, self.query_codes
        gallery = self.space(np.arange(len(self.gallery)), of_gallery=True).vectors
        return torch.cat((queries, gallery)), np.concatenate((self.query_codes, self.gallery_codes))


def read_sets(
    embeddings: Any, labels: Any, gallery: Any, gallery_labels: Any, geometry: Geometry, relevance: Any = None
) -> Sets:
    queries = as_vectors(embeddings)
    check(
        gallery is not None or len(queries) > 1,
        "one embedding alone has no neighbours: give at least two, or a gallery",
    )
    items = None if gallery is None else as_vectors(gallery, "gallery").to(queries.device)
    if items is not None:
        wide = (items.shape[1], queries.shape[1])
        check(wide[0] == wide[1], f"the gallery has {wide[0]} dimensions, the embeddings {wide[1]}: they must agree")
    columns = _columns(queries, labels, items, gallery_labels, relevance)
    own = columns[0] if isinstance(columns[0], LabelSets) and columns[0].opposed is None else None
    rule, unknown, columns = _rule(columns, relevance)
    codes, names = encode(*columns)
    unit = unit_of(geometry, *(queries,) if items is None else (queries, items))
    gallery_codes = None if items is None else codes[1]
    own = None if rule is None else own
    return Sets(queries, items, codes[0], gallery_codes, names, geometry, unit, rule, unknown, own)


def _columns(queries: Tensor, labels: Any, items: Tensor | None, gallery_labels: Any, relevance: Any) -> list[Any]:
    """The labels of queries and gallery; with a matrix of relevance they only name the rows and may be left out."""
    sizes = [("labels", labels, len(queries))]
    if items is not None:
        sizes.append(("gallery_labels", gallery_labels, len(items)))
    if relevance is not None and not isinstance(relevance, str) and labels is None and gallery_labels is None:
        return [range(size) for _, _, size in sizes]
    check(labels is not None, "give labels, or relevance as a matrix queries × gallery")
    check((items is None) == (gallery_labels is None), "give both gallery and gallery_labels, or neither")
    for name, column, size in sizes:
        if isinstance(column, LabelSets) or several(column):
            check(len(column) == size, f"{len(column)} {name} for {size} embeddings: give one per embedding")
    if several(*(column for _, column, _ in sizes)):
        return list(joint_sets(*(column for _, column, _ in sizes)))
    return [values_of(column, name, size) for name, column, size in sizes]


def _rule(columns: list[Any], relevance: Any) -> tuple[Relevance | None, NDArray[np.bool_] | None, list[Any]]:
    """What is relevant unless it is the query's class, which pairs are unknown, and the names of all rows."""
    sets = [column for column in columns if isinstance(column, LabelSets)]
    names = [column.texts() for column in sets] or columns
    if relevance is not None and not isinstance(relevance, str):
        return by_matrix(relevance, len(columns[0]), len(columns[-1]), len(columns) == 1), None, names
    check(relevance in (None, SHARED), f"relevance is a matrix queries × gallery or '{SHARED}', not {relevance!r}")
    if not sets and relevance is None:
        return None, None, columns
    sets = sets or joint_sets(*columns)
    single = relevance is None and all(part.numbers.shape[1] == 1 and part.opposed is None for part in sets)
    if single and all(int(part.numbers.max()) < len(part.names) for part in sets):
        return None, None, [[part.names[number] for number in part.numbers[:, 0].tolist()] for part in sets]
    rule = by_labels(sets[0], sets[1] if len(sets) > 1 else None, relevance == SHARED)
    unknown = None
    if sets[0].opposed is not None:
        unknown = ~((sets[0].shared(sets[-1]) > 0) | sets[0].opposes(sets[-1])).numpy()
    return rule, unknown, names


def unit_of(geometry: Geometry, *sets: Tensor) -> float:
    """Un-normalised vectors are measured in units of the longest, so that no square over- or underflows."""
    return min(largest_norm(*sets) or 1.0, sys.float_info.max) if geometry == "none" else 1.0
