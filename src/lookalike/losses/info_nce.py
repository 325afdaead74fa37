"""van den Oord, Li, Vinyals: Representation Learning with Contrastive Predictive Coding, 2018; NT-Xent, Chen et al.,
ICML 2020 [math A22].

L = mean over ordered positive pairs of −log( e^{S_p/T} / (e^{S_p/T} + Σ_N e^{S_n/T}) ): the other positives are not
in the denominator. See also: supcon, n_pair.
"""

from torch import nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check_positive
from lookalike.geometry import Geometry, check_geometry
from lookalike.loss_inputs import value_of_pairs
from lookalike.reductions import log_sum_exp, mean_where, softplus
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Value


class InfoNCE(nn.Module):
    """Picks each positive out of a line-up with all negatives of its anchor.

    temperature: T, which divides the similarities; the smaller, the more the hardest negatives count.
    normalise: where embeddings are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(self, temperature: float = 0.1, normalise: Geometry = "sphere") -> None:
        super().__init__()
        check_positive(temperature=temperature)
        self.temperature, self.normalise = temperature, check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        return value_of_pairs(self, embeddings, targets, candidates)

    def of_similarities(self, similarities: Similarities, pairs: Pairs) -> Value:
        logits = similarities / self.temperature
        negatives = log_sum_exp(logits, pairs.negative)
        return mean_where(softplus(negatives[:, None] - logits), pairs.positive)
