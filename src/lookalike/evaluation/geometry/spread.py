"""Tightness of classes and distance between them [math F.8], alignment and uniformity [math F.14] (Wang & Isola 2020).

Sums over pairs of a class follow from the sum of its vectors, so all but uniformity take one pass over the data.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from lookalike.errors import UserError
from lookalike.evaluation.inputs import Codes
from lookalike.geometry import normalise

BLOCK = 1024
CHUNK = 2**14


def class_sums(vectors: Float[Tensor, "n d"], codes: Codes) -> tuple[Tensor, Tensor, Tensor]:
    """Per class: the sum of its vectors, the sum of their squared norms, and their number; in float64."""
    classes = torch.from_numpy(codes).to(vectors.device)
    sizes = torch.bincount(classes)
    sums = torch.zeros(len(sizes), vectors.shape[1], dtype=torch.float64, device=vectors.device)
    squares = torch.zeros(len(sizes), dtype=torch.float64, device=vectors.device)
    for start in range(0, len(vectors), CHUNK):
        part, where = vectors[start : start + CHUNK].double(), classes[start : start + CHUNK]
        sums.index_add_(0, where, part)
        squares.index_add_(0, where, part.square().sum(1))
    return sums, squares, sizes


def intra(vectors: Float[Tensor, "n d"], codes: Codes) -> float:
    """Mean over classes of the mean of 1 − cos over its pairs; classes of one are skipped.

    >>> import numpy as np
    >>> intra(torch.eye(3), np.array([0, 0, 1]))
    1.0
    """
    sums, squares, sizes = class_sums(normalise(vectors, "sphere"), codes)
    several = sizes > 1
    if not several.any():
        raise UserError("intra needs a class with at least two samples")
    number = sizes[several].double()
    cosines = (sums[several].square().sum(1) - squares[several]) / (number * (number - 1))
    return float((1 - cosines).mean())


def inter(vectors: Float[Tensor, "n d"], codes: Codes) -> float:
    """Mean over ordered pairs of classes of 1 − cos of their (normalised) means."""
    sums, _, sizes = class_sums(normalise(vectors, "sphere"), codes)
    means = normalise(sums[sizes > 0], "sphere")
    number = len(means)
    if number < 2:
        raise UserError("inter needs at least two classes")
    cosines = (means.sum(0).square().sum() - means.square().sum()) / (number * (number - 1))
    return float(1 - cosines)


def intra_inter(vectors: Float[Tensor, "n d"], codes: Codes) -> float:
    return intra(vectors, codes) / max(inter(vectors, codes), 1e-8)


def alignment(vectors: Float[Tensor, "n d"], codes: Codes) -> float:
    """Mean squared distance over all pairs of one class."""
    sums, squares, sizes = class_sums(vectors, codes)
    number = sizes.double()
    pairs = (number * (number - 1)).sum()
    if pairs == 0:
        raise UserError("alignment needs a class with at least two samples")
    return float(2 * (number * squares - sums.square().sum(1)).sum() / pairs)


def uniformity(vectors: Float[Tensor, "n d"], block: int = BLOCK) -> float:
    """log mean exp(−2 ‖a − b‖²) over all pairs of different samples, `block` × `block` at a time."""
    half, total, number = vectors.double().square().sum(1).float() / 2, 0.0, len(vectors)
    if number < 2:
        raise UserError("uniformity needs at least two samples")
    for i in range(0, number, block):
        for j in range(i, number, block):
            rows, columns = slice(i, i + block), slice(j, j + block)
            scores = vectors[rows] @ vectors[columns].T
            squares = (half[rows, None] + half[columns] - scores).mul_(2).clamp_(min=0)
            if i == j:
                squares.fill_diagonal_(math.inf)
            total += float(squares.mul_(-2).exp_().sum(dtype=torch.float64)) * (1 if i == j else 2)
    return math.log(total / (number * (number - 1))) if total else -math.inf
