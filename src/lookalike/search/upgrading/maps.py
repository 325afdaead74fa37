"""Maps from the vectors of one model to those of another, learnt from items that both have embedded; the best one.

With centred vectors X of the old model and Y of the new one, as rows:
orthogonal: min ‖XW − Y‖ over WᵀW = I or WWᵀ = I, which is W = UVᵀ of the singular vectors of XᵀY (Schönemann, A
generalized solution of the orthogonal Procrustes problem, Psychometrika 1966);
ridge: min ‖XW − Y‖² + λ‖W‖², with the λ whose predictions of each row from the others have the least error (Allen, The
relationship between variable selection and data augmentation, Technometrics 1974). A network with a hidden layer beside
it was measured and is not worth its time: `benchmarks/upgrade.py`.

Each kind is judged on items that it was not fitted to. A query is an item as the new model embeds it; the gallery are
the other items of the sample, mapped or embedded by the new model. Relevant are the items of the same label; in an
index without labels, the nearest item by the new model.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32

from lookalike.errors import UserError, check
from lookalike.geometry import Geometry
from lookalike.search.items import Vectors
from lookalike.search.queries import placed
from lookalike.search.stores import Store
from lookalike.search.stores.copying import UPGRADE
from lookalike.values import dataclass_of

PENALTIES = np.logspace(-5, 2, 22)  # λ as parts of the largest squared singular value of X
OldVectors = Float32[np.ndarray, "n old"]
NewVectors = Float32[np.ndarray, "n new"]
VectorMap = Callable[[OldVectors], NewVectors]
FOLDS = 5
RANKS = 10
ENOUGH = 50  # queries that have a relevant item
JUDGED = 5_000  # items of the sample that ask and are found: each is compared with each


def orthogonal(old: OldVectors, new: NewVectors) -> VectorMap:
    from_, to = old.mean(0), new.mean(0)
    left, scales, right = np.linalg.svd((old - from_).T @ (new - to), full_matrices=False)
    scale = scales.sum() / max(float(np.square(old - from_).sum()), 1e-12)
    return _affine(from_, scale * left @ right, to)


def ridge(old: OldVectors, new: NewVectors) -> VectorMap:
    from_, to = old.mean(0), new.mean(0)
    left, singular, right = np.linalg.svd((old - from_).astype(np.float64), full_matrices=False)
    squares, target = singular**2, (new - to).astype(np.float64)
    turned = left.T @ target

    def error(penalty: float) -> float:
        kept = squares / (squares + penalty)
        leverage = 1 / len(old) + (left**2) @ kept
        rest = target - left @ (kept[:, None] * turned)
        return float(np.square(rest / np.maximum(1 - leverage, 1e-6)[:, None]).sum())

    penalty = min(PENALTIES * max(squares[0], 1e-12), key=error)
    return _affine(from_, right.T @ ((singular / (squares + penalty))[:, None] * turned), to)


KINDS: Mapping[str, Callable[[OldVectors, NewVectors], VectorMap]] = {"orthogonal": orthogonal, "ridge": ridge}


def _affine(from_: np.ndarray, matrix: np.ndarray, to: np.ndarray) -> VectorMap:
    matrix = np.asarray(matrix, np.float32)
    return lambda vectors: np.asarray((vectors - from_) @ matrix + to, np.float32)


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
        raise UserError(f"the index's upgrade record is damaged: {again}") from None


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
