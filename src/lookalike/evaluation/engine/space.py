"""Vectors ready to be scored: placed in their geometry, permuted, rounded to float32.

The score of two vectors is −‖a − b‖²/2; on the sphere the same up to a constant, the cosine. Both grow with closeness,
and a tolerance means the same in both. The vectors are normalised in float64 and rounded once, so they do not depend on
the machine; block scores are float32 products, and exact ones are float64 sums over the same float32 vectors.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lookalike.evaluation.inputs import CHUNK, Codes
from lookalike.geometry import Geometry, normalise, norms

UNIT_ROUNDING = 2.0**-24
SAFETY = 2.0  # a float32 sum over d terms errs by about 0.3 √d units at worst: beyond six standard deviations


@dataclass(frozen=True)
class Space:
    """`vectors` in evaluation order, `half` = ‖e‖²/2 per row (zeros on the sphere: the score is the cosine there)."""

    vectors: Float[Tensor, "n d"]
    half: Float[Tensor, " n"]
    spherical: bool

    @property
    def rounding(self) -> float:
        """How far a float32 score may be from the exact one."""
        terms = float(self.vectors.shape[1])
        return SAFETY * UNIT_ROUNDING * (math.sqrt(terms) + 2) * (1 if self.spherical else 2)

    def block(self, rows: slice, other: "Space", columns: slice, out: Tensor) -> Tensor:
        """The scores of some rows with some rows of another space, in `out`."""
        torch.mm(self.vectors[rows], other.vectors[columns].T, out=out)
        if not self.spherical:
            out.sub_(self.half[rows, None].to(out.dtype)).sub_(other.half[columns].to(out.dtype))
        return out

    def exact_block(self, rows: slice, other: "Space", columns: slice) -> Tensor:
        """The same in float64."""
        scores = (
            self.vectors[rows].to(self.half.device).double() @ other.vectors[columns].to(self.half.device).double().T
        )
        return scores if self.spherical else scores.sub_(self.half[rows, None]).sub_(other.half[columns])


def largest_norm(*sets: Tensor) -> float:
    parts = (vectors[start : start + CHUNK] for vectors in sets for start in range(0, len(vectors), CHUNK))
    return max(float(norms(part.cpu().double()).max()) for part in parts)


def place(vectors: Tensor, order: Codes, geometry: Geometry, unit: float = 1.0) -> Space:
    """The vectors of `order` in their geometry; `unit` divides un-normalised ones, so that no square overflows."""
    placed = torch.empty(len(order), vectors.shape[1], device=vectors.device)
    half = torch.zeros(
        len(order), dtype=torch.float64, device="cpu" if vectors.device.type == "mps" else vectors.device
    )
    for start in range(0, len(order), CHUNK):
        index = torch.from_numpy(np.ascontiguousarray(order[start : start + CHUNK])).to(vectors.device)
        wide = vectors[index].to(half.device).double()
        exact = normalise(wide, geometry) if geometry != "none" else wide / unit
        rounded = exact.float()
        placed[start : start + CHUNK] = rounded.to(placed.device)
        if geometry != "sphere":
            half[start : start + CHUNK] = rounded.double().square().sum(1) / 2
    return Space(placed, half, geometry == "sphere")
