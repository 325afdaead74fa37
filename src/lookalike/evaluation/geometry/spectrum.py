"""rho: how far the singular values of the embeddings are from uniform [math F.7, I.7] (Roth et al., ICML 2020).

p = s / Σ s over the singular values of the uncentred matrix without the first `drop`; rho = KL(U ‖ p). Lower = flatter.
The paper's figure drops the largest value (drop = 1); its text means drop = 0. Directions beyond the numerical rank, as
a head has that is wider than its features, hold only rounding errors and do not count.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from lookalike.evaluation.inputs import Codes

SMALLEST = 1e-12
FIRST_VALUES = 35  # of the class-wise spectrum, figure 11


def singular_values(vectors: Float[Tensor, "n d"]) -> Float[Tensor, " rank"]:
    """Those of the numerical rank: above max(n, d) · eps of the largest, with the eps of the vectors' own type.

    >>> len(singular_values(torch.ones(5, 3)))
    1
    """
    values: Tensor = torch.linalg.svdvals(vectors.double())
    precision = torch.finfo(vectors.dtype if vectors.is_floating_point() else torch.float64).eps
    return values[values > max(vectors.shape) * precision * values[:1]]


def rho(vectors: Float[Tensor, "n d"], drop: int = 1) -> float:
    """KL(U ‖ p) of the spectrum.

    >>> round(abs(rho(torch.eye(4), drop=0)), 9)
    0.0
    """
    return of_spectrum(singular_values(vectors), drop)


def of_spectrum(values: Float[Tensor, " k"], drop: int) -> float:
    left = values[drop:]
    if not len(left):  # a space that is collapsed to the directions dropped: rho is largest
        return -math.log(SMALLEST)
    share = (left / left.sum()).clamp(min=SMALLEST)
    return float(-(share * len(left)).log().mean())


def rho_by_class(vectors: Float[Tensor, "n d"], codes: Codes) -> dict[int, float]:
    """rho of every class with more than two samples."""
    classes = torch.from_numpy(codes)
    sizes = torch.bincount(classes).tolist()
    return {code: rho(vectors[classes == code]) for code, size in enumerate(sizes) if size > 2}


def class_spectrum(vectors: Float[Tensor, "n d"], codes: Codes) -> Float[Tensor, " k"]:
    """The first singular values of every class, averaged over the classes that have that many (figure 11)."""
    classes = torch.from_numpy(codes)
    total, number = (torch.zeros(FIRST_VALUES, dtype=torch.float64) for _ in range(2))
    for code in range(int(classes.max()) + 1):
        members = vectors[classes == code]
        if len(members):
            values = singular_values(members)[:FIRST_VALUES]
            total[: len(values)] += values.cpu()
            number[: len(values)] += 1
    return total[number > 0] / number[number > 0]
