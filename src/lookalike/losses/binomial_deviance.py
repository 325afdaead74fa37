"""Yi, Lei, Li: Deep Metric Learning for Practical Person Re-Identification, 2014; Multi-Similarity, eq. 9.

L = (1/m) Σ_i { mean_P log(1 + e^{α(λ − S)}) + mean_N log(1 + e^{β(S − λ)}) }.

Departs from the paper: divided by m for training (`reduction="sum"` gives the printed sum); λ = 0.5 (ERR-11).
See also: bin_lifted, multi_similarity.
"""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lookalike.errors import check
from lookalike.geometry import Geometry, check_geometry, compare
from lookalike.reductions import softplus
from lookalike.targets import Pairs, Targets, as_pairs


class BinomialDeviance(nn.Module):
    """Weighs every pair by a sigmoid of its own similarity, on either side of one threshold."""

    def __init__(
        self,
        alpha: float = 2.0,  # α
        beta: float = 50.0,  # β
        threshold: float = 0.5,  # λ
        reduction: Literal["mean", "sum"] = "mean",
        normalise: Geometry = "sphere",
    ) -> None:
        super().__init__()
        check(alpha > 0 and beta > 0, f"alpha and beta must be positive, not {alpha} and {beta}")
        check(reduction in ("mean", "sum"), f"reduction must be 'mean' or 'sum', not {reduction!r}")
        self.alpha, self.beta, self.threshold = alpha, beta, threshold
        self.reduction, self.normalise = reduction, check_geometry(normalise)

    def forward(
        self, embeddings: Float[Tensor, "n d"], targets: Targets, candidates: Float[Tensor, "m d"] | None = None
    ) -> Float[Tensor, ""]:
        pairs = as_pairs(targets, embeddings, candidates)
        return self.of_similarities(compare(embeddings, candidates, self.normalise), pairs)

    def of_similarities(self, similarities: Float[Tensor, "n m"], pairs: Pairs) -> Float[Tensor, ""]:
        one = similarities.new_ones(())
        positives, negatives = (kept.sum(1, keepdim=True).clamp(min=1) for kept in (pairs.positive, pairs.negative))
        shares = torch.where(pairs.positive, one / positives, torch.where(pairs.negative, one / negatives, 0.0))
        scales = torch.where(pairs.positive, -self.alpha * one, self.beta * one)
        total = (softplus(scales * (similarities - self.threshold)) * shares).sum()
        return total if self.reduction == "sum" else total / max(1, len(similarities))
