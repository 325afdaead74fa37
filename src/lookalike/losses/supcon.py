"""Khosla et al.: Supervised Contrastive Learning, NeurIPS 2020, eq. 2 (L_out).

L = mean over anchors of −(1/|P|) Σ_p [ S_p/T − lse_{k ≠ i} S_k/T ]. See also: nca, info_nce.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lookalike.errors import check
from lookalike.geometry import Geometry, check_geometry, compare, log_sum_exp, mean_where
from lookalike.targets import Pairs, Targets, as_pairs


class SupCon(nn.Module):
    """Spreads an anchor's soft neighbourhood evenly over its positives, against everything else in the batch."""

    def __init__(
        self,
        temperature: float = 0.1,  # T
        normalise: Geometry = "sphere",
    ) -> None:
        super().__init__()
        check(temperature > 0, f"temperature must be positive, not {temperature}")
        self.temperature, self.normalise = temperature, check_geometry(normalise)

    def forward(
        self, embeddings: Float[Tensor, "n d"], targets: Targets, candidates: Float[Tensor, "m d"] | None = None
    ) -> Float[Tensor, ""]:
        pairs = as_pairs(targets, embeddings, candidates)
        return self.of_similarities(compare(embeddings, candidates, self.normalise), pairs)

    def of_similarities(self, similarities: Float[Tensor, "n m"], pairs: Pairs) -> Float[Tensor, ""]:
        logits = similarities / self.temperature
        positives = pairs.positive.sum(1)
        drawn = torch.where(pairs.positive, logits, 0.0).sum(1) / positives.clamp(min=1)
        terms = log_sum_exp(logits, pairs.positive | pairs.negative) - drawn
        return mean_where(terms, positives > 0)
