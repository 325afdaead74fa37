"""Yi, Lei, Li: Deep Metric Learning for Practical Person Re-Identification, 2014; Multi-Similarity, eq. 9 [math A9].

L = (1/m) Σ_i { mean_P log(1 + e^{α(λ − S)}) + mean_N log(1 + e^{β(S − λ)}) }.

Departs from the paper: divided by m for training (`reduction="sum"` gives the printed sum); λ = 0.5 [math ERR-11].
See also: bin_lifted, multi_similarity.
"""

from typing import Literal

import torch
from torch import nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check, check_positive
from lookalike.geometry import Geometry, check_geometry
from lookalike.loss_inputs import value_of_pairs
from lookalike.reductions import softplus
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Value


class BinomialDeviance(nn.Module):
    """Weighs every pair by a sigmoid of its own similarity, on either side of one threshold.

    alpha: α, the scale of positive pairs: how sharply their weight falls with similarity.
    beta: β, the scale of negative pairs: how sharply their weight rises with similarity.
    threshold: λ, the similarity at which a pair weighs half.
    reduction: "mean" over anchors, or their "sum" as printed.
    normalise: where embeddings are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self,
        alpha: float = 2.0,
        beta: float = 50.0,
        threshold: float = 0.5,
        reduction: Literal["mean", "sum"] = "mean",
        normalise: Geometry = "sphere",
    ) -> None:
        super().__init__()
        check_positive(alpha=alpha, beta=beta)
        check(reduction in ("mean", "sum"), f"reduction must be 'mean' or 'sum', not {reduction!r}")
        self.alpha, self.beta, self.threshold = alpha, beta, threshold
        self.reduction, self.normalise = reduction, check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        return value_of_pairs(self, embeddings, targets, candidates)

    def of_similarities(self, similarities: Similarities, pairs: Pairs) -> Value:
        one = similarities.new_ones(())
        positives, negatives = pairs.positive.sum(1, keepdim=True), pairs.negative.sum(1, keepdim=True)
        of_negatives = torch.where(pairs.negative, one / negatives.clamp(min=1), 0.0)
        shares = torch.where(pairs.positive, one / positives.clamp(min=1), of_negatives)
        scales = torch.where(pairs.positive, -self.alpha * one, self.beta * one)
        total = (softplus(scales * (similarities - self.threshold)) * shares).sum()
        return total if self.reduction == "sum" else total / max(1, len(similarities))
