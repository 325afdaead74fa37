"""Vectors ready to be scored: placed in their geometry, permuted, rounded to float32.

The score of two vectors is −‖a − b‖²/2; on the sphere the same up to a constant, the cosine. Both grow with closeness,
and a tolerance means the same in both. Block scores are float32 products of vectors that were normalised in float64 and
rounded once. Exact scores are float64 sums over the vectors as they were given, times the two factors that normalise
them: nothing is rounded on the way there.
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
    """`vectors` in evaluation order, `half` = ‖e‖²/2 per row (zeros on the sphere: the score is the cosine there).

    `given` times `scale`, row by row, are the same vectors before rounding.
    """

    vectors: Float[Tensor, "n d"]
    half: Float[Tensor, " n"]
    spherical: bool
    given: Float[Tensor, "n d"]
    scale: Float[Tensor, " n"]

    @property
    def rounding(self) -> float:
        """How far a float32 score of rounded vectors may be from the exact one."""
        terms = float(self.vectors.shape[1])
        return SAFETY * UNIT_ROUNDING * (math.sqrt(terms) + 2) * (1 if self.spherical else 2)

    def block(self, rows: slice, other: "Space", columns: slice, out: Tensor) -> Tensor:
        """The scores of some rows with some rows of another space, in `out`."""
        torch.mm(self.vectors[rows], other.vectors[columns].T, out=out)
        if not self.spherical:
            out.sub_(self.half[rows, None].to(out.dtype)).sub_(other.half[columns].to(out.dtype))
        return out

    def exact_block(self, rows: slice, other: "Space", columns: slice) -> Tensor:
        """The same in float64, of the vectors as they were given."""
        scores = self.exact(rows) @ other.exact(columns).T
        return scores if self.spherical else scores.sub_(self.half[rows, None]).sub_(other.half[columns])

    def exact(self, rows: slice | Tensor) -> Tensor:
        """Some rows in float64."""
        return self.given[rows].double() * self.scale[rows][..., None]


def largest_norm(*sets: Tensor) -> float:
    parts = (vectors[start : start + CHUNK] for vectors in sets for start in range(0, len(vectors), CHUNK))
    return max(float(norms(part.cpu().double()).max()) for part in parts)


def place(vectors: Tensor, order: Codes, geometry: Geometry, unit: float = 1.0) -> Space:
    """The vectors of `order` in their geometry; `unit` divides un-normalised ones, so that no square overflows."""
    placed = torch.empty(len(order), vectors.shape[1], device=vectors.device)
    precise = "cpu" if vectors.device.type == "mps" else vectors.device  # where float64 exists
    half = torch.zeros(len(order), dtype=torch.float64, device=precise)
    narrow = vectors.dtype != torch.float64  # a float64 sum over products of float32 numbers does not overflow
    given = torch.empty(placed.shape, dtype=torch.float32 if narrow else torch.float64, device=precise)
    scale = torch.ones_like(half)
    for start in range(0, len(order), CHUNK):
        index = torch.from_numpy(np.ascontiguousarray(order[start : start + CHUNK])).to(vectors.device)
        wide = vectors[index].to(half.device).double()
        if narrow:
            scale[start : start + CHUNK] = factors(wide, geometry, unit)
            exact = wide * scale[start : start + CHUNK, None]
        else:
            exact = normalise(wide, geometry) if geometry != "none" else wide / unit
        placed[start : start + CHUNK] = exact.float().to(placed.device)
        given[start : start + CHUNK] = wide if narrow else exact
        if geometry != "sphere":
            half[start : start + CHUNK] = exact.square().sum(1) / 2
    return Space(placed, half, geometry == "sphere", given, scale)


def factors(vectors: Tensor, geometry: Geometry, unit: float) -> Tensor:
    """By how much `place` multiplies each row of numbers that were float32, so that no square overflows."""
    lengths: Tensor = torch.linalg.vector_norm(vectors, dim=1)
    if geometry == "none":
        return torch.full_like(lengths, 1 / unit)
    if geometry == "ball":
        return 1 / lengths.clamp(min=1)
    return torch.where(lengths > 0, 1 / lengths, 0.0)
