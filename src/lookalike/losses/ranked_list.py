"""Wang, Hua, Kodirov, Hu, Garnier, Robertson: Ranked List Loss for Deep Metric Learning, CVPR 2019 [math A24e].

L = mean over anchors of (1 − λ) Σ_{P: d > α − m} w (d − α + m) / Σ w + λ Σ_{N: d < α} w (α − d) / Σ w, with constant
weights w = e^{T_P (d − α + m)} and w = e^{T_N (α − d)}.

Departs from pytorch-metric-learning: the weights have no gradient, as the paper says of them, and nothing is added to
their sum. See also: margin_contrastive (T = 0, one mean over all pairs).
"""

from torch import nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check, check_at_least
from lookalike.geometry import Geometry, Squares, check_geometry, distances
from lookalike.loss_inputs import value_of_distances
from lookalike.reductions import log_softmax_sums
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Value


class RankedList(nn.Module):
    """Gathers positives in a ball and negatives outside a larger one, the more a negative intrudes the more it counts.

    boundary: α, the distance beyond which a negative is left alone.
    margin: m, by which the positives' ball is smaller.
    balance: λ, the share of the negatives; 1 − λ is that of the positives.
    positive_temperature: T_P, how much the farthest positives outweigh the others; 0: all alike.
    negative_temperature: T_N, how much the nearest negatives outweigh the others.
    normalise: where embeddings are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self,
        boundary: float = 1.2,
        margin: float = 0.4,
        balance: float = 0.5,
        positive_temperature: float = 0.0,
        negative_temperature: float = 10.0,
        normalise: Geometry = "sphere",
    ) -> None:
        super().__init__()
        check_at_least(0, margin=margin)
        check(0 <= balance <= 1, f"balance is a share between 0 and 1, not {balance}")
        check_at_least(0, positive_temperature=positive_temperature, negative_temperature=negative_temperature)
        self.boundary, self.margin, self.balance = boundary, margin, balance
        self.positive_temperature, self.negative_temperature = positive_temperature, negative_temperature
        self.normalise = check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        return value_of_distances(self, embeddings, targets, candidates)

    def of_similarities(self, similarities: Similarities, pairs: Pairs, lengths: Squares = None) -> Value:
        apart = distances(similarities, lengths)
        far, near = apart - (self.boundary - self.margin), self.boundary - apart
        _, pull = log_softmax_sums(self.positive_temperature * far, pairs.positive & (far > 0))
        _, push = log_softmax_sums(self.negative_temperature * near, pairs.negative & (near > 0))
        terms = (1 - self.balance) * pull * far + self.balance * push * near
        return terms.sum() / max(1, len(similarities))
