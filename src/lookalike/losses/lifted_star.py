"""Wang, Han, Huang, Dong, Scott: Multi-Similarity Loss with General Pair Weighting, CVPR 2019, eq. 16 (LiftedStruct*)
[math A3d].

L = (1/m) Σ_i { (1/α) lse_P (−αS) + (1/β) lse_N (βS) }, no hinge: it may be negative. An anchor needs both sets.
See also: lifted_structure, generalised_lifted, bin_lifted.
"""

import torch
from torch import nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check_positive
from lookalike.geometry import Geometry, check_geometry
from lookalike.loss_inputs import value_of_pairs
from lookalike.reductions import log_sum_exp
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Value


class LiftedStar(nn.Module):
    """Lifts the least similar positive and lowers the most similar negative, each by its softmax share alone.

    alpha: α, the scale of positive pairs: how much the least similar one outweighs the others.
    beta: β, the scale of negative pairs: how much the most similar one outweighs the others.
    normalise: where embeddings are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(self, alpha: float = 2.0, beta: float = 50.0, normalise: Geometry = "sphere") -> None:
        super().__init__()
        check_positive(alpha=alpha, beta=beta)
        self.alpha, self.beta, self.normalise = alpha, beta, check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        return value_of_pairs(self, embeddings, targets, candidates)

    def of_similarities(self, similarities: Similarities, pairs: Pairs) -> Value:
        pull = log_sum_exp(similarities, pairs.positive, -self.alpha) / self.alpha
        push = log_sum_exp(similarities, pairs.negative, self.beta) / self.beta
        # −∞ where an anchor lacks one of the two sets: it is skipped
        both = pull + push
        return torch.where(both > -torch.inf, both, 0.0).sum() / max(1, len(both))
