"""How likely is the best hit right? What its first hits say, weighed by logistic regression.

A similarity alone does not carry over to other classes: some are narrow, some have twins. What does is how the hits
stand to each other. They agree on a class or they do not; the next class is far or near; and the query is as similar to
the members of the class as these are to each other, or it stands outside (local scaling, as in CSLS: Conneau, Lample,
Ranzato, Denoyer, Jégou, ICLR 2018). All of it follows from the first 20 hits and their vectors.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Float64, Int

from lookalike.geometry import Geometry
from lookalike.search.items import Hit, Vectors

HITS = 20  # that are looked at
NEAR = 10  # of them, where the neighbourhood of the query or of its best hit is meant
RIDGE = 1.0  # half of it times the squared weights, in units of standard deviations, is added to the loss
ROUNDS = 50
Evidence = Float64[np.ndarray, "n evidence"]


def evidence(
    similarities: Float[np.ndarray, "n k"], labels: Int[np.ndarray, "n k"], mutual: Float[np.ndarray, "n k k"]
) -> Evidence:
    """What the first hits of n queries say; `mutual` are the similarities of hits to each other."""
    k = similarities.shape[1]
    same = labels == labels[:, :1]
    count = same.sum(1)
    others = np.where(same, -np.inf, similarities).max(1)
    pairs = same[:, :, None] & same[:, None] & ~np.eye(k, dtype=bool)
    near = np.broadcast_to(~np.eye(min(k, NEAR), dtype=bool), (len(same), min(k, NEAR), min(k, NEAR)))
    best, lone = similarities[:, 0], similarities[:, 0]
    around = -np.sort(-mutual[:, 0, 1:], axis=1)[:, :NEAR]
    return np.stack(
        [
            best,
            np.where(np.isfinite(others), others, similarities.min(1)),  # the best hit of another class
            similarities.min(1),
            similarities[:, :NEAR].mean(1),
            np.log(count),
            same[:, :5].mean(1),
            same[:, :NEAR].mean(1),
            count / k,  # how many agree with the best hit
            (similarities * same).sum(1) / count,  # the query and the members of that class
            _mean(mutual, pairs, lone),  # these members among themselves
            around.mean(1) if k > 1 else lone,  # the best hit and its neighbours
            _mean(mutual[:, :NEAR, :NEAR], near, lone),
        ],
        axis=1,
    ).astype(np.float64)


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


def of_hits(hits: Sequence[Hit], vectors: Vectors, geometry: Geometry) -> Float64[np.ndarray, "1 evidence"]:
    """One row, from the labelled hits of one query and their vectors."""
    _, codes = np.unique([str(hit.label) for hit in hits], return_inverse=True)
    similarities = np.array([[hit.similarity for hit in hits]])
    return evidence(similarities, codes[None], mutual_similarities(vectors[None], geometry))


def fit(rows: Evidence, right: Bool[np.ndarray, " n"]) -> tuple[float, ...]:
    """Weights of the evidence, and last a constant: ridge logistic regression by Newton's method."""
    centre, scale = rows.mean(0), rows.std(0)
    scale[scale < 1e-12] = 1.0
    inputs = np.concatenate([(rows - centre) / scale, np.ones((len(rows), 1))], axis=1)
    penalty = RIDGE * np.append(np.ones(rows.shape[1]), 0.0)
    weights = np.zeros(inputs.shape[1])
    weights[-1] = np.log((right.sum() + 1) / ((~right).sum() + 1))
    for _ in range(ROUNDS):
        chances = _logistic(inputs @ weights)
        slope = inputs.T @ (chances - right) + penalty * weights
        curvature = (inputs * (chances * (1 - chances))[:, None]).T @ inputs + np.diag(penalty + 1e-9)
        step = np.linalg.solve(curvature, slope)
        weights = weights - step
        if float(np.abs(step).max()) < 1e-9:
            break
    plain = weights[:-1] / scale
    return (*plain.tolist(), float(weights[-1] - plain @ centre))


def chance(rows: Evidence, weights: Sequence[float]) -> Float64[np.ndarray, " n"]:
    """The chance that the best hit is right."""
    return _logistic(rows @ np.asarray(weights[:-1]) + weights[-1])


def _logistic(values: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    return np.asarray(0.5 * (1 + np.tanh(values / 2)))
