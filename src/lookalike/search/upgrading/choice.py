"""Which map is best for an index, and what it keeps of the new model's recall, on items that it was not fitted to.

A query is an item as the new model embeds it; the gallery are the other items of the sample, mapped or embedded by the
new model. Relevant are the items of the same label; in an index without labels, the nearest item by the new model.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from lookalike.errors import UserError, check
from lookalike.geometry import Geometry
from lookalike.search.items import Vectors
from lookalike.search.queries import placed
from lookalike.search.stores import Store
from lookalike.search.stores.copying import UPGRADE
from lookalike.search.upgrading.maps import KINDS, NewVectors, OldVectors
from lookalike.values import dataclass_of

FOLDS = 5
RANKS = 10
ENOUGH = 50  # queries that have a relevant item
JUDGED = 5_000  # items of the sample that ask and are found: each is compared with each


@dataclass(frozen=True)
class MapChoice:
    """The best kind of map, and recall@10: of both models, and of queries by the new one among items mapped."""

    kind: str
    sample: int
    old: float
    new: float
    mapped: Mapping[str, float]

    @property
    def share(self) -> float:
        """What the best map keeps of the new model's recall."""
        return self.mapped[self.kind] / self.new if self.new else 0.0


def kept_choice(store: Store) -> MapChoice | None:
    """The map that an unfinished upgrade uses."""
    text = store.documents.read(UPGRADE)
    if text is None:
        return None
    try:
        choice = dataclass_of(MapChoice, json.loads(text), UPGRADE)
        recalls = (choice.old, choice.new, *choice.mapped.values())
        check(choice.kind in KINDS and choice.kind in choice.mapped, "it names no map")
        check(choice.sample >= 0 and all(0 <= recall <= 1 for recall in recalls), "a recall is from 0 to 1")
        return choice
    except (RecursionError, ValueError):
        again = "embed everything again with lookalike index --new-generation"
        raise UserError(f"what this index says of its upgrade is damaged, or was tampered with: {again}") from None


def choose(old: OldVectors, new: NewVectors, labels: Sequence[str | None], geometry: Geometry) -> MapChoice:
    """Judge every kind of map by rows that were left out when it was fitted."""
    rows = np.random.default_rng(0).permutation(len(old))[:JUDGED]
    queries, relevant = new[rows], _relevant(new[rows], [labels[row] for row in rows], geometry)

    def recall(queries: Vectors, gallery: Vectors) -> float:
        return float(_recall(queries, gallery, relevant, geometry)[relevant.any(1)].mean())

    mapped = {kind: recall(queries, vectors[rows]) for kind, vectors in _mapped(old, new, geometry)}
    best = max(mapped, key=mapped.__getitem__)
    return MapChoice(best, len(old), recall(old[rows], old[rows]), recall(queries, queries), mapped)


def _mapped(old: OldVectors, new: NewVectors, geometry: Geometry) -> list[tuple[str, NewVectors]]:
    """The vectors of each kind of map, every one by a map that has not seen it."""
    folds = np.random.default_rng(0).permutation(len(old)) % FOLDS
    result = []
    for name, fit in KINDS.items():
        mapped = np.empty_like(new)
        for fold in range(FOLDS):
            mapped[folds == fold] = fit(old[folds != fold], new[folds != fold])(old[folds == fold])
        result.append((name, placed(mapped, geometry)))
    return result


def _relevant(new: Vectors, labels: Sequence[str | None], geometry: Geometry) -> Bool[np.ndarray, "n n"]:
    numbers = {label: row for row, label in enumerate(labels) if label is not None}
    codes = np.array([len(labels) + row if label is None else numbers[label] for row, label in enumerate(labels)])
    same: Bool[np.ndarray, "n n"] = codes[:, None] == codes
    np.fill_diagonal(same, False)
    if same.any(1).sum() >= ENOUGH:
        return same
    nearest = np.zeros((len(new), len(new)), bool)
    nearest[np.arange(len(new)), _apart(new, new, geometry).argmin(1)] = True
    return nearest


def _recall(queries: Vectors, gallery: Vectors, relevant: np.ndarray, geometry: Geometry) -> Bool[np.ndarray, " n"]:
    """Whether a relevant item is among the first ten of each query."""
    first = np.argpartition(_apart(queries, gallery, geometry), RANKS, axis=1)[:, :RANKS]
    return np.asarray(np.take_along_axis(relevant, first, 1).any(1))


def _apart(queries: Vectors, gallery: Vectors, geometry: Geometry) -> np.ndarray:
    """What grows with the distance of a query and an item; none is its own neighbour."""
    apart: np.ndarray = -queries @ gallery.T
    if geometry != "sphere":
        apart += np.square(gallery).sum(1) / 2
    np.fill_diagonal(apart, np.inf)
    return apart
