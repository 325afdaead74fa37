"""Khosla et al.: Supervised Contrastive Learning, NeurIPS 2020, eq. 2 (L_out) [math A22].

L = mean over anchors of −(1/|P|) Σ_p [ S_p/T − lse_{k ≠ i} S_k/T ]. See also: nca, info_nce.
"""

import torch
from torch import nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check
from lookalike.geometry import Geometry, check_geometry
from lookalike.loss_inputs import value_of_pairs
from lookalike.reductions import log_softmax_sums, weighted
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Value


class SupCon(nn.Module):
    """Spreads an anchor's soft neighbourhood evenly over its positives, against everything else in the batch.

    temperature: T, which divides the similarities; the smaller, the more the nearest samples count.
    normalise: where embeddings are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(self, temperature: float = 0.1, normalise: Geometry = "sphere") -> None:
        super().__init__()
        check(0 < temperature < torch.inf, f"temperature must be positive, not {temperature}")
        self.temperature, self.normalise = temperature, check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        return value_of_pairs(self, embeddings, targets, candidates)

    def of_similarities(self, similarities: Similarities, pairs: Pairs) -> Value:
        scale, values = 1 / self.temperature, similarities.detach()
        lse_all, softmax_all = log_softmax_sums(values, pairs.positive | pairs.negative, scale)
        even_positives = pairs.positive.to(values.dtype)
        even_positives.div_(even_positives.sum(1, keepdim=True).clamp_(min=1))
        counted = pairs.positive.any(1).to(values.dtype)  # anchors that have a positive
        shares = counted / counted.sum().clamp(min=1)

        # the value: the mean over anchors of lse S/T minus the mean of S/T over the positives
        terms = lse_all - scale * (even_positives * values).sum(1)
        value = torch.where(shares > 0, terms * shares, 0.0).sum()

        # the pair weights ∂L/∂S: softmax over all others minus an even share per positive, divided by T and the anchors
        weights = softmax_all.sub_(even_positives).mul_(scale * shares[:, None])
        return weighted(similarities, value, weights)
