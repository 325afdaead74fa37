"""Gürbüz, Can, Alatan: Deep Metric Learning with Chance Constraints, supplement, loss "C2" (values of the MLRC search).

L = mean over active positive pairs of [d − m+]_+ + mean over active negative pairs of [m− − d]_+.
See also: contrastive (means over all pairs), cosine_contrastive.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lookalike.errors import check
from lookalike.geometry import Geometry, Squares, check_geometry, compare, distances, squares
from lookalike.reductions import weighted
from lookalike.targets import Pairs, Targets, as_pairs

PRESETS = {
    "cub": {"positive_margin": 0.0, "negative_margin": 0.3841},
    "cars": {"positive_margin": 0.2652, "negative_margin": 0.5409},
    "inshop": {"positive_margin": 0.2858, "negative_margin": 0.5130},
    "sop": {"positive_margin": 0.2858, "negative_margin": 0.5130},
}


class MarginContrastive(nn.Module):
    """Pulls positives into a shell and pushes negatives out of another, averaging only what still moves."""

    def __init__(
        self,
        positive_margin: float = 0.0,  # m+
        negative_margin: float = 0.3841,  # m−
        normalise: Geometry = "ball",
    ) -> None:
        super().__init__()
        check(positive_margin >= 0, f"positive_margin must be at least 0, not {positive_margin}")
        check(negative_margin >= 0, f"negative_margin must be at least 0, not {negative_margin}")
        self.positive_margin, self.negative_margin = positive_margin, negative_margin
        self.normalise = check_geometry(normalise)

    def forward(
        self, embeddings: Float[Tensor, "n d"], targets: Targets, candidates: Float[Tensor, "m d"] | None = None
    ) -> Float[Tensor, ""]:
        pairs = as_pairs(targets, embeddings, candidates)
        similarities = compare(embeddings, candidates, self.normalise)
        return self.of_similarities(similarities, pairs, squares(embeddings, candidates, self.normalise))

    def of_similarities(
        self, similarities: Float[Tensor, "n m"], pairs: Pairs, lengths: Squares = None
    ) -> Float[Tensor, ""]:
        apart = distances(similarities, lengths)
        pulled = pairs.positive & (apart.detach() > self.positive_margin)
        pushed = pairs.negative & (apart.detach() < self.negative_margin)
        weights = _evenly(pulled, apart.dtype) - _evenly(pushed, apart.dtype)
        pulling, pushing = pulled.any().to(apart.dtype), pushed.any().to(apart.dtype)
        value = (weights * apart.detach()).sum() + self.negative_margin * pushing - self.positive_margin * pulling
        return weighted(apart, value, weights)


def _evenly(active: Tensor, dtype: torch.dtype) -> Tensor:
    """The same weight for every active pair, 1 in all."""
    return active.to(dtype).div_(active.sum().clamp(min=1))
