"""Roth, Brattoli, Ommer: MIC, ICCV 2019; Revisiting Training Strategies, eq. 21-22; SPEC B.3.

Departs from the paper: max and min where it prints argmax and argmin, and the second set holds positives (ERR-23).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lookalike.geometry import Geometry, check_geometry, compare, distances, squares
from lookalike.targets import Targets, Triplets, as_pairs, pick


@dataclass
class SoftHard:
    """A uniform one of the positives behind the nearest negative, and of the negatives before the farthest positive."""

    normalise: Geometry = "sphere"
    generator: torch.Generator | None = None

    def __post_init__(self) -> None:
        check_geometry(self.normalise)

    @torch.no_grad()
    def __call__(
        self, embeddings: Float[Tensor, "n d"], targets: Targets, candidates: Float[Tensor, "m d"] | None = None
    ) -> Triplets:
        pairs = as_pairs(targets, embeddings, candidates)
        similarities = compare(embeddings, candidates, self.normalise)
        apart = distances(similarities, squares(embeddings, candidates, self.normalise))
        nearest_negative = torch.where(pairs.negative, apart, torch.inf).amin(1, keepdim=True)
        farthest_positive = torch.where(pairs.positive, apart, -torch.inf).amax(1, keepdim=True)
        far = pairs.positive & (apart > nearest_negative)
        close = pairs.negative & (apart < farthest_positive)
        return Triplets(
            anchor=torch.arange(len(embeddings), device=embeddings.device),
            positive=pick(torch.where(far.any(1, keepdim=True), far, pairs.positive), self.generator),
            negative=pick(torch.where(close.any(1, keepdim=True), close, pairs.negative), self.generator),
            valid=pairs.positive.any(1) & pairs.negative.any(1),
            labels=pairs.candidate_labels,
        )
