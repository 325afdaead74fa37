"""Yu, Tao: Deep Metric Learning with Tuplet Margin Loss, ICCV 2019 [math A24a].

L = mean over ordered positive pairs of log(1 + Σ_N e^{s (cos θ_n − cos(θ_p − β))}).

Departs from the paper: cos(θ_p − β) stops at 1 where θ_p < β. As printed it falls again, so that positives nearer than
β are driven apart, with an infinite slope where two rows are equal. See also: info_nce (β = 0), intra_pair_variance.
"""

import math

import torch
from torch import Tensor, nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check, check_positive
from lookalike.geometry import Geometry, check_geometry
from lookalike.loss_inputs import value_of_pairs
from lookalike.reductions import log_sum_exp, mean_where, softplus
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Value


class TupletMargin(nn.Module):
    """Picks each positive out of a line-up with all negatives of its anchor, and grants it a few degrees of slack.

    margin: β, the angle in radians by which a positive counts as nearer than it is.
    scale: s, which multiplies the cosines; the larger, the more the hardest negatives count.
    normalise: where embeddings are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(self, margin: float = 0.1, scale: float = 64.0, normalise: Geometry = "sphere") -> None:
        super().__init__()
        check(0 <= margin < math.pi / 2, f"margin is an angle in radians between 0 and π/2, not {margin}")
        check_positive(scale=scale)
        self.margin, self.scale, self.normalise = margin, scale, check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        return value_of_pairs(self, embeddings, targets, candidates)

    def of_similarities(self, similarities: Similarities, pairs: Pairs) -> Value:
        negatives = log_sum_exp(similarities, pairs.negative, self.scale)
        excess = negatives[:, None] - self.scale * self._nearer(similarities)
        return mean_where(softplus(excess), pairs.positive)

    def _nearer(self, cosine: Tensor) -> Tensor:
        """cos(θ − β) from cos θ, and 1 from θ = β on."""
        bounded = cosine.clamp(-1 + 1e-7, 1 - 1e-7)
        sine = (1 - bounded.square()).sqrt()
        turned = bounded * math.cos(self.margin) + sine * math.sin(self.margin)
        return torch.where(cosine < math.cos(self.margin), turned, 1.0)
