"""The embeddings of an evaluation: queries, and a gallery unless the queries are their own."""

import math
import sys
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookalike.errors import check
from lookalike.evaluation.engine.space import Space, largest_norm, place
from lookalike.evaluation.inputs import Codes, as_vectors
from lookalike.geometry import Geometry
from lookalike.labels import encode, values_of


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

    def space(self, order: Codes, of_gallery: bool, unit: float | None = None) -> Space:
        vectors = self.gallery if of_gallery and self.gallery is not None else self.queries
        return place(vectors, order, self.geometry, self.unit if unit is None else unit)

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


def read_sets(embeddings: Any, labels: Any, gallery: Any, gallery_labels: Any, geometry: Geometry) -> Sets:
    queries = as_vectors(embeddings)
    query_values = values_of(labels, "labels", len(queries))
    check((gallery is None) == (gallery_labels is None), "give both gallery and gallery_labels, or neither")
    if gallery is None:
        (codes,), names = encode(query_values)
        check(len(queries) > 1, "one embedding alone has no neighbours: give at least two, or a gallery")
        return Sets(queries, None, codes, None, names, geometry, unit_of(geometry, queries))
    items = as_vectors(gallery, "gallery").to(queries.device)
    wide = (items.shape[1], queries.shape[1])
    check(wide[0] == wide[1], f"the gallery has {wide[0]} dimensions, the embeddings {wide[1]}: they must agree")
    (query_codes, gallery_codes), names = encode(query_values, values_of(gallery_labels, "gallery_labels", len(items)))
    return Sets(queries, items, query_codes, gallery_codes, names, geometry, unit_of(geometry, queries, items))


def unit_of(geometry: Geometry, *sets: Tensor) -> float:
    """Un-normalised vectors are measured in units of the longest, so that no square over- or underflows."""
    return min(largest_norm(*sets) or 1.0, sys.float_info.max) if geometry == "none" else 1.0
