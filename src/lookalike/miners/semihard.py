"""Schroff, Kalenichenko, Philbin: FaceNet, CVPR 2015; Revisiting Training Strategies, eq. 20 [math B.2].

Departs from the paper: the printed equation omits the upper bound of the band [math ERR-22]; `upper=False` gives it.
"""

from dataclasses import dataclass, field

import torch

from lookalike.choices import fallback, pick
from lookalike.errors import check
from lookalike.geometry import Geometry, check_geometry, distances_between
from lookalike.loss_inputs import as_pairs
from lookalike.targets import Candidates, Embeddings, Targets, Triplets


@dataclass
class SemiHard:
    """A uniform positive, and a uniform negative from the band just behind it (any negative if the band is empty).

    margin: the width of the band, in distance.
    upper: False leaves the band open at its far end, as the printed equation does.
    """

    margin: float = 0.2
    upper: bool = True
    normalise: Geometry = "sphere"
    generator: torch.Generator | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check(self.margin >= 0, f"margin must be at least 0, not {self.margin}")
        check_geometry(self.normalise)

    @torch.no_grad()
    def __call__(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Triplets:
        pairs = as_pairs(targets, embeddings, candidates)
        apart = distances_between(embeddings, candidates, self.normalise)
        if not apart.shape[1]:  # no candidates, no band
            return Triplets.of(pairs, pick(pairs.positive), pick(pairs.negative))
        positive = pick(pairs.positive, self.generator)
        near = apart.gather(1, positive[:, None])
        band = pairs.negative & (apart > near)
        if self.upper:
            band &= apart < near + self.margin
        return Triplets.of(pairs, positive, pick(fallback(band, pairs.negative), self.generator))
