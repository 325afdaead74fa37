"""Logistic regression with weights and a ridge, and its cross-fitted calibration by classes.

Fitted and judged on the same classes, chances look more certain than they are on others. So every class is also
judged by a fit that has not seen it, and Platt's line (1999) through those judgements is folded into the weights.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float64, Int64

RIDGE = 3.0  # half of it times the squared weights, in units of standard deviations, is added to the loss
ROUNDS = 50
FOLDS = 5
Rows = Float64[np.ndarray, "n evidence"]
Column = Float64[np.ndarray, " n"]


def fit(rows: Rows, true: Bool[np.ndarray, " n"], weights: Column, ridge: float = RIDGE) -> tuple[float, ...]:
    """Weights of the evidence, and last a constant, by Newton's method."""
    centre = np.average(rows, axis=0, weights=weights)
    scale = np.sqrt(np.average((rows - centre) ** 2, axis=0, weights=weights))
    scale[scale < 1e-9] = 1.0
    inputs = np.concatenate([(rows - centre) / scale, np.ones((len(rows), 1))], axis=1)
    penalty = ridge * np.append(np.ones(rows.shape[1]), 0.0)
    found = np.zeros(inputs.shape[1])
    share = float(np.average(true, weights=weights))
    found[-1] = np.log((share + 1e-3) / (1 - share + 1e-3))
    for _ in range(ROUNDS):
        chances = logistic(inputs @ found)
        slope = inputs.T @ (weights * (chances - true)) + penalty * found
        curvature = (inputs * (weights * chances * (1 - chances))[:, None]).T @ inputs + np.diag(penalty + 1e-9)
        step = np.linalg.solve(curvature, slope)
        found = found - step
        if float(np.abs(step).max()) < 1e-9:
            break
    plain = found[:-1] / scale
    return (*plain.tolist(), float(found[-1] - plain @ centre))


def crossed(
    rows: Rows, true: Bool[np.ndarray, " n"], weights: Column, classes: Int64[np.ndarray, " n"]
) -> tuple[tuple[float, ...], Column]:
    """Calibrated weights, and each row's chance by fits without its class."""
    fold = folds_of(classes)
    judged = np.zeros(len(rows))
    for turn in range(FOLDS):
        inside = fold == turn
        judged[inside] = logits(rows[inside], fit(rows[~inside], true[~inside], weights[~inside]))
    slope, offset = line(judged, true, weights)
    whole = np.array(fit(rows, true, weights)) * slope
    whole[-1] += offset
    return tuple(whole.tolist()), logistic(slope * judged + offset)


def folds_of(classes: Int64[np.ndarray, " n"]) -> Int64[np.ndarray, " n"]:
    """A number for each row, the same for all of a class."""
    names, codes = np.unique(classes, return_inverse=True)
    return np.asarray((np.random.default_rng(0).permutation(len(names)) % FOLDS)[codes])


def line(
    values: Column, true: Bool[np.ndarray, " n"], weights: Column, groups: Float64[np.ndarray, "n groups"] | None = None
) -> tuple[float, ...]:
    """Slope and offset of the logit over values, and what each group adds; values that mislead count for nothing."""
    rows = values[:, None] if groups is None else np.column_stack([values, groups])
    slope, *added, offset = fit(rows, true, weights, ridge=1e-3)
    if slope > 0:
        return slope, offset, *added
    return 0.0, float(logit(np.array([np.average(true, weights=weights)]))[0]), *(0.0 for _ in added)


def logits(rows: Rows, weights: Sequence[float]) -> Column:
    return np.asarray(rows @ np.asarray(weights[:-1]) + weights[-1])


def chance(rows: Rows, weights: Sequence[float]) -> Column:
    return logistic(logits(rows, weights))


def logistic(values: Column) -> Column:
    return np.asarray(0.5 * (1 + np.tanh(values / 2)))


def logit(chances: Column) -> Column:
    some = np.clip(chances, 1e-9, 1 - 1e-9)
    return np.asarray(np.log(some / (1 - some)))
