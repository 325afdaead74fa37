"""Wang, Han, Huang, Dong, Scott: Multi-Similarity Loss with General Pair Weighting for Deep Metric Learning, CVPR
2019, eq. 15 [math A10].

L = (1/m) Σ_i { (1/α) log(1 + Σ_P e^{−α(S − λ)}) + (1/β) log(1 + Σ_N e^{β(S − λ)}) } over the mined pairs of every
anchor.

Departs from the paper: λ = 0.5 and β = 40 of the released code, the printed λ = 1 being a misprint [math ERR-11]; pairs
that are not mined are removed from the sums, not set to similarity 0 [math ERR-12]. `mining_margin=None` weights all
pairs, `weighting=False` mines with constant weights. See also: miners.multi_similarity, binomial_deviance,
lifted_star.
"""

from torch import Tensor, nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check_positive
from lookalike.geometry import Geometry, check_geometry
from lookalike.loss_inputs import informative, value_of_pairs
from lookalike.reductions import log_sum_exp, softplus
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Value

PRESETS = {
    "cub": {"alpha": 2.0, "beta": 40.0, "threshold": 0.5, "mining_margin": None, "normalise": "ball"},
    "cars": {"alpha": 14.35, "beta": 75.83, "threshold": 0.66, "mining_margin": None, "normalise": "ball"},
    "inshop": {"alpha": 8.49, "beta": 57.38, "threshold": 0.41, "mining_margin": None, "normalise": "ball"},
    "sop": {"alpha": 2.0, "beta": 40.0, "threshold": 0.5, "mining_margin": None, "normalise": "ball"},
    "roth": {"alpha": 2.0, "beta": 40.0, "threshold": 0.5, "mining_margin": 0.1},
}


class MultiSimilarity(nn.Module):
    """Weighs a pair by its own similarity, by its rivals on its side, and (through mining) by the other side.

    alpha: α, the scale of positive pairs: how much the least similar ones outweigh the others.
    beta: β, the scale of negative pairs: how much the most similar ones outweigh the others.
    threshold: λ, the similarity that positives should exceed and negatives stay below.
    mining_margin: ε, by which a pair may be easier than the hardest of the other kind and still count; None: all pairs.
    weighting: False gives every mined pair the same weight.
    normalise: where embeddings are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self,
        alpha: float = 2.0,
        beta: float = 40.0,
        threshold: float = 0.5,
        mining_margin: float | None = 0.1,
        weighting: bool = True,
        normalise: Geometry = "sphere",
    ) -> None:
        super().__init__()
        check_positive(alpha=alpha, beta=beta)
        self.alpha, self.beta, self.threshold = alpha, beta, threshold
        self.mining_margin, self.weighting = mining_margin, weighting
        self.normalise = check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        return value_of_pairs(self, embeddings, targets, candidates)

    def of_similarities(self, similarities: Similarities, pairs: Pairs) -> Value:
        if self.mining_margin is not None:
            pairs = informative(pairs, similarities.detach(), self.mining_margin)
        terms = self._weighted(similarities, pairs) if self.weighting else self._constant(similarities, pairs)
        return terms.sum() / max(1, len(similarities))

    def _weighted(self, similarities: Tensor, pairs: Pairs) -> Tensor:
        """The two logarithms of every anchor."""
        # λ is the same for all pairs: it is added after the sum over them
        pull = softplus(log_sum_exp(similarities, pairs.positive, -self.alpha) + self.alpha * self.threshold)
        push = softplus(log_sum_exp(similarities, pairs.negative, self.beta) - self.beta * self.threshold)
        return pull / self.alpha + push / self.beta

    def _constant(self, similarities: Tensor, pairs: Pairs) -> Tensor:
        """Σ_N S − Σ_P S of every anchor: mining without weighting."""
        return (similarities * (pairs.negative.to(similarities.dtype) - pairs.positive.to(similarities.dtype))).sum(1)
