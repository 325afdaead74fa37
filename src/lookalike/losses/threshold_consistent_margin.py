"""Zhang, Xu, Tang, Fang, Wu, Tighe, Xing: Threshold-Consistent Margin Loss for Open-World Deep Metric Learning, ICLR
2024 [math A24c].

L = λ+ · mean over positive pairs with S ≤ m+ of (m+ − S) + λ− · mean over negative pairs with S ≥ m− of (S − m−). The
paper adds it to another loss, so that one threshold of similarity serves all classes. See also: margin_contrastive (the
same with distances).
"""

from torch import nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check_at_least
from lookalike.geometry import Geometry, check_geometry
from lookalike.loss_inputs import value_of_pairs
from lookalike.reductions import mean_where
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Value


class ThresholdConsistentMargin(nn.Module):
    """Lifts positive pairs above one similarity and lowers negative pairs below another, the same two for all classes.

    positive_margin: m+, the similarity above which a positive pair is left alone.
    negative_margin: m−, the similarity below which a negative pair is left alone.
    positive_weight: λ+, the weight of the positive pairs.
    negative_weight: λ−, the weight of the negative pairs.
    normalise: where embeddings are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self,
        positive_margin: float = 0.9,
        negative_margin: float = 0.5,
        positive_weight: float = 1.0,
        negative_weight: float = 1.0,
        normalise: Geometry = "sphere",
    ) -> None:
        super().__init__()
        check_at_least(0, positive_weight=positive_weight, negative_weight=negative_weight)
        self.positive_margin, self.negative_margin = positive_margin, negative_margin
        self.positive_weight, self.negative_weight = positive_weight, negative_weight
        self.normalise = check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        return value_of_pairs(self, embeddings, targets, candidates)

    def of_similarities(self, similarities: Similarities, pairs: Pairs) -> Value:
        low, high = self.positive_margin - similarities, similarities - self.negative_margin
        pull = mean_where(low, pairs.positive & (low >= 0))
        push = mean_where(high, pairs.negative & (high >= 0))
        return self.positive_weight * pull + self.negative_weight * push
