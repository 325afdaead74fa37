"""Roth, Brattoli, Ommer: MIC, ICCV 2019; Revisiting Training Strategies, eq. 21-22 [math B.3].

Departs from the paper: max and min where it prints argmax and argmin, and the second set holds positives [math ERR-23].
"""

from dataclasses import dataclass, field

import torch

from lookalike.choices import fallback, pick
from lookalike.geometry import Geometry, check_geometry, distances_between
from lookalike.loss_inputs import as_pairs
from lookalike.targets import Candidates, Embeddings, Targets, Triplets


@dataclass
class SoftHard:
    """A uniform one of the positives behind the nearest negative, and of the negatives before the farthest positive."""

    normalise: Geometry = "sphere"
    generator: torch.Generator | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_geometry(self.normalise)

    @torch.no_grad()
    def __call__(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Triplets:
        pairs = as_pairs(targets, embeddings, candidates)
        apart = distances_between(embeddings, candidates, self.normalise)
        if not apart.shape[1]:  # no candidates, no extremes
            return Triplets.of(pairs, pick(pairs.positive), pick(pairs.negative))
        nearest_negative = torch.where(pairs.negative, apart, torch.inf).amin(1, keepdim=True)
        farthest_positive = torch.where(pairs.positive, apart, -torch.inf).amax(1, keepdim=True)
        far = pairs.positive & (apart > nearest_negative)
        close = pairs.negative & (apart < farthest_positive)
        positive = pick(fallback(far, pairs.positive), self.generator)
        return Triplets.of(pairs, positive, pick(fallback(close, pairs.negative), self.generator))
