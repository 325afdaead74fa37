"""What the first hits of a query say: which label it is, and what speaks for it.

The label is that of the class which is densest around the query: the mean over the members of a class of
exp(sharpness · similarity), so that a class of three photos is not outvoted by one of fifty (a kernel density for
each class, of which only the first hits are seen).

A similarity alone does not carry over to other classes: some are narrow, some have twins. What does is how the hits
stand to each other. They agree on a class or they do not; the next class is far or near; and the query is as similar to
the members of the class as these are to each other, or it stands outside (local scaling, as in CSLS: Conneau, Lample,
Ranzato, Denoyer, Jégou, ICLR 2018). All of it follows from the first 20 hits, their vectors and the sizes of classes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Float64, Int64

from lookalike.geometry import Geometry
from lookalike.search.items import Near, Vectors

HITS = 20  # that are looked at
NEAR = 10  # of them, where the neighbourhood of the query or of its best hit is meant
BEST, AHEAD = 0, 24  # columns: the best hit of the label, and how much better the best of all is
FIRST, SIZE, ITEMS = 3, 12, 26  # columns: the mean similarity of the first ten hits; logarithms of numbers
IN_0_2_0 = 12  # columns that version 0.2.0 had, in the same order
WIDEST = 10.0  # nats between two labels: more says nothing new
Evidence = Float64[np.ndarray, "n evidence"]


@dataclass(frozen=True)
class Rule:
    """How a label follows from hits: `sharpness` of the kernel, and the power of class sizes it is divided by."""

    sharpness: float
    evenness: float


@dataclass(frozen=True)
class SeenHits:
    """The first hits of n queries."""

    similarities: Float64[np.ndarray, "n k"]
    labels: Int64[np.ndarray, "n k"]
    sizes: Float64[np.ndarray, "n k"]  # how many items the class of each hit has
    mutual: Float64[np.ndarray, "n k k"]  # the similarities of hits to each other
    items: Float64[np.ndarray, " n"]  # that could have been found


@dataclass(frozen=True)
class Reading:
    """What they say."""

    place: Int64[np.ndarray, " n"]  # of the best hit of the label
    second: Int64[np.ndarray, " n"]  # and of the next label; -1: all hits have the same
    evidence: Evidence


def densities(seen: SeenHits, rule: Rule | None) -> Float64[np.ndarray, "n k"]:
    """The logarithm of the density of each hit's class; without a rule, how near its nearest hit is."""
    same = seen.labels[:, :, None] == seen.labels[:, None]
    if rule is None:
        return np.asarray(np.where(same, seen.similarities[:, None], -np.inf).max(2))
    kernel = np.exp(rule.sharpness * (seen.similarities - seen.similarities[:, :1]))
    total = (same * kernel[:, None]).sum(2)
    return np.asarray(np.log(np.maximum(total, 1e-30)) - rule.evenness * np.log(np.maximum(seen.sizes, 1)))


def read(seen: SeenHits, rule: Rule | None) -> Reading:
    """The label, the next one, and the evidence for the first."""
    similarities, labels, mutual = seen.similarities, seen.labels, seen.mutual
    n, k = similarities.shape
    row = np.arange(n)
    score = densities(seen, rule)
    same = labels == labels[row, score.argmax(1)][:, None]
    place = same.argmax(1)
    other_score = np.where(same, -np.inf, score)
    alone = same.all(1)
    second = np.where(alone, -1, other_score.argmax(1))
    count = same.sum(1)
    size = np.maximum(seen.sizes[row, place], 1)
    others = np.where(same, -np.inf, similarities)
    lowest = similarities.min(1)
    next_best = np.where(alone, lowest, others.max(1))
    next_size = np.where(alone, size, np.maximum(seen.sizes[row, others.argmax(1)], 1))
    best, top = similarities[row, place], min(k, NEAR)
    of_best = np.where(np.arange(k)[None] == place[:, None], -np.inf, mutual[row, place])
    around = _around(of_best, best)
    of_others = np.where(same, -np.inf, of_best).max(1)
    inner = same[:, :, None] & same[:, None] & ~np.eye(k, dtype=bool)
    near = np.broadcast_to(~np.eye(top, dtype=bool), (n, top, top))
    seats = np.minimum(size, k)  # hits that the class could fill
    first = ~((labels[:, :, None] == labels[:, None]) & np.tri(k, k, -1, dtype=bool)[None]).any(2)
    lead = score[row, place] - np.where(alone, score[row, place] - WIDEST, other_score.max(1))
    share = _share(np.where(first, score, -np.inf))
    own = (similarities * same).sum(1) / count
    logs = np.log(seen.items)
    columns = [
        best,
        next_best,
        lowest,
        similarities[:, :NEAR].mean(1),
        np.log(count),
        same[:, :5].mean(1),
        same[:, :NEAR].mean(1),
        count / k,  # how many agree on the label
        own,  # the query and the members of that class
        _mean(mutual, inner, best),  # these members among themselves
        around.mean(1),  # the best hit and its neighbours
        _mean(mutual[:, :top, :top], near, best),
        np.log(size),
        np.log(next_size),
        count / seats,
        (same & (np.arange(k)[None] < seats[:, None])).sum(1) / seats,
        first[:, :NEAR].mean(1),  # different labels among the first hits
        around[:, 0],
        np.where(np.isfinite(of_others), of_others, next_best),  # the best hit and other classes
        count == 1,
        np.minimum(lead, WIDEST),
        np.log(np.maximum(share, 1e-6)),
        score[row, place],
        np.log(share / (1 - share + 1e-3)),
        similarities[:, 0] - best,
        place == 0,
        logs,
        logs * (size == 1),
    ]
    return Reading(place, second, np.stack(columns, axis=1).astype(np.float64))


def _around(of_best: Float64[np.ndarray, "n k"], best: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, "n near"]:
    """The similarities of the best hit to the hits nearest to it, falling; without any, its own to the query."""
    falling = -np.sort(-of_best, axis=1)[:, : max(1, min(NEAR, of_best.shape[1] - 1))]
    return np.asarray(np.where(np.isfinite(falling), falling, best[:, None]))


def _share(scores: Float64[np.ndarray, "n k"]) -> Float64[np.ndarray, " n"]:
    """That of the densest class in all of them."""
    relative = np.exp(scores - scores.max(1, keepdims=True))
    return np.asarray(1 / relative.sum(1))


def _mean(
    values: Float[np.ndarray, "n a a"], chosen: Bool[np.ndarray, "n a a"], otherwise: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    number = chosen.sum((1, 2))
    return np.where(number > 0, (values * chosen).sum((1, 2)) / np.maximum(number, 1), otherwise)


def mutual_similarities(vectors: Float[np.ndarray, "*n k d"], geometry: Geometry) -> Float64[np.ndarray, "*n k k"]:
    """Each with each, as an index compares: the cosine on the sphere, else −‖a − b‖²/2."""
    exact = vectors.astype(np.float64)
    products = exact @ np.swapaxes(exact, -1, -2)
    if geometry == "sphere":
        return np.asarray(products)
    squares = np.einsum("...ii->...i", products)
    return np.asarray(products - (squares[..., :, None] + squares[..., None, :]) / 2)


def seen_of(
    hits: Sequence[Near], vectors: Vectors, sizes: Mapping[str, int], items: int, geometry: Geometry
) -> SeenHits:
    """The labelled hits of one query, with their vectors, the sizes of their classes and of the index."""
    labels = [str(hit.name) for hit in hits]
    return SeenHits(
        np.array([[hit.similarity for hit in hits]], np.float64),
        np.unique(labels, return_inverse=True)[1].astype(np.int64)[None],
        np.array([[sizes[label] for label in labels]], np.float64),
        mutual_similarities(vectors[None], geometry),
        np.array([max(items, 1)], np.float64),
    )
