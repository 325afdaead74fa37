"""Wang, Han, Huang, Dong, Scott: Multi-Similarity Loss with General Pair Weighting, CVPR 2019, supplement eq. 10
(BinLifted) [math A11].

Defined by its weights, w− = ½( σ(β(S − λ)) + softmax_N(βS) ) and w+ = ½( σ(α(λ − S)) + softmax_P(−αS) ); this is their
antiderivative. See also: binomial_deviance, lifted_star.
"""

import torch
from torch import Tensor, nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check_positive
from lookalike.geometry import Geometry, check_geometry
from lookalike.loss_inputs import value_of_pairs
from lookalike.reductions import log_sum_exp, softplus
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Value


class BinLifted(nn.Module):
    """Averages the weights of binomial deviance (a pair alone) and of the lifted loss (a pair among its rivals).

    alpha: α, the scale of positive pairs: how sharply their weight falls with similarity.
    beta: β, the scale of negative pairs: how sharply their weight rises with similarity.
    threshold: λ, the similarity at which a pair alone weighs half.
    normalise: where embeddings are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self, alpha: float = 2.0, beta: float = 50.0, threshold: float = 0.5, normalise: Geometry = "sphere"
    ) -> None:
        super().__init__()
        check_positive(alpha=alpha, beta=beta)
        self.alpha, self.beta, self.threshold = alpha, beta, threshold
        self.normalise = check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        return value_of_pairs(self, embeddings, targets, candidates)

    def of_similarities(self, similarities: Similarities, pairs: Pairs) -> Value:
        one = similarities.new_ones(())
        shares = torch.where(pairs.positive, one / self.alpha, torch.where(pairs.negative, one / self.beta, 0.0))
        scales = torch.where(pairs.positive, -self.alpha * one, self.beta * one)
        alone = (softplus(scales * (similarities - self.threshold)) * shares).sum()
        among_positives = self._among(similarities, pairs.positive, -self.alpha)
        among_negatives = self._among(similarities, pairs.negative, self.beta)
        return 0.5 * (alone + (among_positives + among_negatives).sum()) / max(1, len(similarities))

    def _among(self, similarities: Tensor, mask: Tensor, scale: float) -> Tensor:
        """(1/|c|) lse(cS) over one side of every anchor, c its signed scale."""
        rivals = log_sum_exp(similarities, mask, scale)
        return torch.where(rivals > -torch.inf, rivals, 0.0) / abs(scale)
