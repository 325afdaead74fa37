"""Sun et al.: Circle Loss: A Unified Perspective of Pair Similarity Optimization, CVPR 2020, eq. 6 (class-level pairs)
[math A22].

L = mean over anchors of softplus( lse_N γ a_n (S_n − m) + lse_P −γ a_p (S_p − 1 + m) ), with the constants
a_p = [1 + m − S_p]_+ and a_n = [S_n + m]_+.
"""

import torch
from torch import nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check_positive
from lookalike.geometry import SATURATION, Geometry, check_geometry
from lookalike.loss_inputs import value_of_pairs
from lookalike.reductions import log_sum_exp, mean_where, softplus
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Value


class Circle(nn.Module):
    """Lets every similarity move at a pace set by its distance from its optimum: a circular decision boundary.

    margin: m, the relaxation: positives aim at 1 + m, negatives at −m.
    scale: γ, which multiplies the weighted similarities.
    normalise: where embeddings are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(self, margin: float = 0.25, scale: float = 80.0, normalise: Geometry = "sphere") -> None:
        super().__init__()
        check_positive(scale=scale)
        self.margin, self.scale, self.normalise = margin, scale, check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        return value_of_pairs(self, embeddings, targets, candidates)

    def of_similarities(self, similarities: Similarities, pairs: Pairs) -> Value:
        fixed = similarities.detach()
        positive_pace, negative_pace = (1 + self.margin - fixed).relu(), (fixed + self.margin).relu()
        pull = -self.scale * positive_pace * (similarities - 1 + self.margin)
        push = self.scale * negative_pace * (similarities - self.margin)
        if self.normalise == "none":  # squares of raw products saturate as the products do
            pull, push = pull.clamp(-SATURATION, SATURATION), push.clamp(-SATURATION, SATURATION)
        # −∞ where an anchor lacks one of the two sets: it does not count
        excess = log_sum_exp(push, pairs.negative) + log_sum_exp(pull, pairs.positive)
        return mean_where(softplus(excess), excess > -torch.inf)
