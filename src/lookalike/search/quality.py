"""Ways to better answers, each tried on the user's own images and kept only where it gains beyond the noise.

- `expansion` (αQE: Radenović, Tolias, Chum, TPAMI 2019): ask again with the mean of the query and its first n hits,
  each weighted by its similarity to the power of α.
- `reciprocal` (Zhong, Zheng, Cao, Li, CVPR 2017): reorder the first hits by the Jaccard distance of their
  neighbourhoods of mutual neighbours, mixed with their similarity.
- `flip`: the mean of the picture and its mirror image as the query.
- the label of a picture: that of its nearest item, or by vote of the first ones.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
from jaxtyping import Float32, Float64

from lookalike.search.filters import Filter
from lookalike.search.items import Answer, Hit, Vectors
from lookalike.search.stores import Store

DEPTH = 100  # hits that are reordered, and that a candidate is judged by
NEIGHBOURS = 20  # k1 of k-reciprocal re-ranking
MIX = 0.3  # share of the similarity itself
VOTERS = 10
Rule = Literal["nearest", "vote"]


@dataclass(frozen=True)
class Quality:
    """What is switched on for an index; nothing by default."""

    expansion: int = 0  # n; 0: off
    power: float = 3.0  # α
    reciprocal: bool = False
    flip: bool = False
    rule: Rule = "nearest"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> "Quality":
        return Quality(**content)

    @property
    def names(self) -> list[str]:
        """What is on, in words."""
        parts = [f"query expansion by {self.expansion} hits"] if self.expansion else []
        parts += ["k-reciprocal re-ranking"] if self.reciprocal else []
        return parts + (["flip"] if self.flip else [])


CANDIDATES: Mapping[str, Quality] = {
    "query expansion, 2 hits": Quality(expansion=2),
    "query expansion, 5 hits": Quality(expansion=5),
    "k-reciprocal re-ranking": Quality(reciprocal=True),
    "flip": Quality(flip=True),
}


def improved(
    store: Store,
    vector: Vectors,
    k: int,
    quality: Quality,
    where: Filter = (),
    group: str | None = None,
    leave_out: Sequence[str] = (),
) -> Answer:
    """The answer to one query with what is switched on; `vector` is the flipped mean already, where that is on."""
    if quality.expansion:
        vector = expanded(store, vector, quality, where, leave_out)
    if not quality.reciprocal:
        (answer,) = store.search(vector, k, where, group, leave_out)
        return answer
    (answer,) = store.search(vector, max(k, DEPTH), where, group, leave_out)
    order = reordered(vector[0], store.vectors([hit.id for hit in answer.hits]) if answer.hits else vector[:0])
    return replace(answer, hits=[answer.hits[place] for place in order][:k])


def expanded(store: Store, vector: Vectors, quality: Quality, where: Filter, leave_out: Sequence[str]) -> Vectors:
    (first,) = store.search(vector, quality.expansion, where, None, leave_out)
    if not first.hits:
        return vector
    weights = np.array([max(hit.similarity, 0.0) ** quality.power for hit in first.hits])
    total = vector[0] + weights @ store.vectors([hit.id for hit in first.hits])
    length = float(np.linalg.norm(total))
    return np.asarray(total[None] / length, np.float32) if length > 0 else vector


def reordered(query: Float32[np.ndarray, " d"], hits: Float32[np.ndarray, "m d"]) -> list[int]:
    """The hits by mutual neighbourhood, nearest first."""
    if len(hits) < 3:
        return list(range(len(hits)))
    every = np.concatenate([query[None], hits]).astype(np.float64)
    similar = every @ every.T
    ranks = np.argsort(-similar, axis=1, kind="stable")
    near = np.zeros(similar.shape, bool)
    count = min(NEIGHBOURS, len(hits)) + 1
    near[np.arange(len(every))[:, None], ranks[:, :count]] = True
    weights = np.where(near & near.T, np.exp(similar - 1), 0.0)
    shared = np.minimum(weights[0], weights[1:]).sum(1)
    joined = np.maximum(weights[0], weights[1:]).sum(1)
    score = MIX * similar[0, 1:] + (1 - MIX) * shared / np.maximum(joined, 1e-12)
    return [int(place) for place in np.lexsort((np.arange(len(hits)), -score))]


def label_of(hits: Sequence[Hit], rule: Rule) -> str | None:
    """The label that hits speak for; None where none of them has one."""
    labelled = [hit for hit in hits if hit.label is not None]
    if rule == "nearest" or not labelled:
        return labelled[0].label if labelled else None
    votes: dict[str, float] = defaultdict(float)
    for hit in labelled[:VOTERS]:
        votes[str(hit.label)] += np.exp(10 * hit.similarity)
    return max(votes, key=lambda label: (votes[label], label))


@dataclass(frozen=True)
class Trial:
    """One candidate beside plain search: the mean of every query's value, and the paired difference."""

    name: str
    recall: float
    map_at_r: float
    difference: float  # of map_at_r
    interval: tuple[float, float]  # of that, over classes
    recall_interval: tuple[float, float]
    kept: bool


def measure(answers: Sequence[Answer], labels: Sequence[str], sizes: Mapping[str, int]) -> Float64[np.ndarray, "n 2"]:
    """recall@1 and map@r (over the first hits) of every query whose class has `sizes` items."""
    rows = []
    for answer, label in zip(answers, labels, strict=True):
        right = np.array([hit.label == label for hit in answer.hits], float)
        count = max(1, min(sizes[label], len(right), DEPTH))
        precisions = right[:count].cumsum() / np.arange(1, count + 1)
        rows.append((right[0] if len(right) else 0.0, float((precisions * right[:count]).sum() / count)))
    return np.array(rows)
