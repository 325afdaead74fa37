"""Yu, Tao: Deep Metric Learning with Tuplet Margin Loss, ICCV 2019, intra-pair variance [math A24b].

L = mean over positive pairs of [(1 − ε) S̄_P − S]_+² + mean over negative pairs of [S − (1 + ε) S̄_N]_+², S̄ the mean
similarity of all positive and of all negative pairs. The paper adds it to tuplet_margin.
"""

import torch
from torch import Tensor, nn

from lookalike.errors import check
from lookalike.geometry import SATURATION, Geometry, check_geometry, compare
from lookalike.reductions import mean_where
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Value, as_pairs, taint


class IntraPairVariance(nn.Module):
    """Gathers the similarities of positive pairs around their mean, and those of negative pairs around theirs.

    positive_slack: ε+, the share of the mean by which a positive pair may be less similar.
    negative_slack: ε−, the share of the mean by which a negative pair may be more similar.
    normalise: where embeddings are compared: "sphere", "ball" or "none".
    """

    def __init__(
        self, positive_slack: float = 0.01, negative_slack: float = 0.01, normalise: Geometry = "sphere"
    ) -> None:
        super().__init__()
        check(positive_slack >= 0, f"positive_slack must be at least 0, not {positive_slack}")
        check(negative_slack >= 0, f"negative_slack must be at least 0, not {negative_slack}")
        self.positive_slack, self.negative_slack = positive_slack, negative_slack
        self.normalise = check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        pairs = as_pairs(targets, embeddings, candidates)
        similarities = compare(embeddings, candidates, self.normalise)
        return self.of_similarities(similarities, pairs) + taint(embeddings, candidates)

    def of_similarities(self, similarities: Similarities, pairs: Pairs) -> Value:
        usual, rivals = mean_where(similarities, pairs.positive), mean_where(similarities, pairs.negative)
        low = (1 - self.positive_slack) * usual - similarities
        high = similarities - (1 + self.negative_slack) * rivals
        # a pair is in one of the masks: one square serves both
        squares = self._squared(torch.where(pairs.positive, low, high))
        return mean_where(squares, pairs.positive) + mean_where(squares, pairs.negative)

    def _squared(self, deviations: Tensor) -> Tensor:
        """[x]_+², which stops at 1e30 as raw products do."""
        return deviations.clamp(0, SATURATION**0.5).square()
