"""Yu, Tao: Deep Metric Learning with Tuplet Margin Loss, ICCV 2019, intra-pair variance [math A24b].

L = mean over positive pairs of [(1 − ε) S̄_P − S]_+² + mean over negative pairs of [S − (1 + ε) S̄_N]_+², S̄ the mean
similarity of all positive and of all negative pairs. The paper adds it to tuplet_margin.
"""

import torch
from torch import nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check_at_least
from lookalike.geometry import SATURATION, Geometry, check_geometry
from lookalike.loss_inputs import value_of_pairs
from lookalike.reductions import weighted
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Value


class IntraPairVariance(nn.Module):
    """Gathers the similarities of positive pairs around their mean, and those of negative pairs around theirs.

    positive_slack: ε+, the share of the mean by which a positive pair may be less similar.
    negative_slack: ε−, the share of the mean by which a negative pair may be more similar.
    normalise: where embeddings are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self, positive_slack: float = 0.01, negative_slack: float = 0.01, normalise: Geometry = "sphere"
    ) -> None:
        super().__init__()
        check_at_least(0, positive_slack=positive_slack, negative_slack=negative_slack)
        self.positive_slack, self.negative_slack = positive_slack, negative_slack
        self.normalise = check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        return value_of_pairs(self, embeddings, targets, candidates)

    def of_similarities(self, similarities: Similarities, pairs: Pairs) -> Value:
        values = similarities.detach()
        positive, negative = pairs.positive.to(values.dtype), pairs.negative.to(values.dtype)
        near, far = positive.sum().clamp(min=1), negative.sum().clamp(min=1)
        usual = (1 - self.positive_slack) * (values * positive).sum() / near
        rivals = (1 + self.negative_slack) * (values * negative).sum() / far

        # squares of raw products saturate as the products do
        low = (usual - values).clamp_(0, SATURATION**0.5).mul_(positive)
        high = (values - rivals).clamp_(0, SATURATION**0.5).mul_(negative)
        value = low.square().sum() / near + high.square().sum() / far

        # the pair weights ∂L/∂S: that of the pair itself, and its share in the mean; 0 where saturated
        if self.normalise == "none":
            low, high = (torch.where(x < SATURATION**0.5, x, 0.0) for x in (low, high))
        of_usual = 2 * (1 - self.positive_slack) * low.sum() / near.square()
        of_rivals = 2 * (1 + self.negative_slack) * high.sum() / far.square()
        weights = high.mul_(2 / far).sub_(low.mul_(2 / near))
        weights.add_(positive.mul_(of_usual)).sub_(negative.mul_(of_rivals))
        return weighted(similarities, value, weights)
