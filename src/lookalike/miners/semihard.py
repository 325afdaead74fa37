"""Schroff, Kalenichenko, Philbin: FaceNet, CVPR 2015; Revisiting Training Strategies, eq. 20; SPEC B.2.

Departs from the paper: the printed equation omits the upper bound of the band (ERR-22); `upper=False` gives it.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lookalike.errors import check
from lookalike.geometry import Geometry, check_geometry, compare, distances, squares
from lookalike.targets import Targets, Triplets, as_pairs, pick


@dataclass
class SemiHard:
    """A uniform positive, and a uniform negative from the band just behind it (any negative if the band is empty)."""

    margin: float = 0.2
    upper: bool = True
    normalise: Geometry = "sphere"
    generator: torch.Generator | None = None

    def __post_init__(self) -> None:
        check(self.margin >= 0, f"margin must be at least 0, not {self.margin}")
        check_geometry(self.normalise)

    @torch.no_grad()
    def __call__(
        self, embeddings: Float[Tensor, "n d"], targets: Targets, candidates: Float[Tensor, "m d"] | None = None
    ) -> Triplets:
        pairs = as_pairs(targets, embeddings, candidates)
        similarities = compare(embeddings, candidates, self.normalise)
        apart = distances(similarities, squares(embeddings, candidates, self.normalise))
        positive = pick(pairs.positive, self.generator)
        near = apart.gather(1, positive[:, None])
        band = pairs.negative & (apart > near)
        if self.upper:
            band &= apart < near + self.margin
        return Triplets(
            anchor=torch.arange(len(embeddings), device=embeddings.device),
            positive=positive,
            negative=pick(torch.where(band.any(1, keepdim=True), band, pairs.negative), self.generator),
            valid=pairs.positive.any(1) & pairs.negative.any(1),
            labels=pairs.candidate_labels,
        )
