"""Goldberger, Roweis, Hinton, Salakhutdinov: Neighbourhood Components Analysis, NeurIPS 2004; Multi-Similarity,
suppl. eq. 1 [math A12].

L = −(1/m) Σ_i log( Σ_P e^{S/T} / Σ_{k ≠ i} e^{S/T} ).

Departs from the paper: the printed equation lacks the minus sign and sums the denominator over i instead of k
[math ERR-13]. See also: supcon (mean of logs instead of log of the sum), proxy_nca.
"""

import torch
from torch import nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check
from lookalike.geometry import Geometry, check_geometry
from lookalike.loss_inputs import value_of_pairs
from lookalike.reductions import log_softmax_sums, weighted
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Value


class NCA(nn.Module):
    """Raises the chance that a soft nearest neighbour of the anchor is one of its positives.

    temperature: T, which divides the similarities; the smaller, the more the nearest samples count.
    normalise: where embeddings are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(self, temperature: float = 1.0, normalise: Geometry = "sphere") -> None:
        super().__init__()
        check(0 < temperature < torch.inf, f"temperature must be positive, not {temperature}")
        self.temperature, self.normalise = temperature, check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        return value_of_pairs(self, embeddings, targets, candidates)

    def of_similarities(self, similarities: Similarities, pairs: Pairs) -> Value:
        scale, anchors = 1 / self.temperature, max(1, len(similarities))
        lse_positives, softmax_positives = log_softmax_sums(similarities, pairs.positive, scale)
        lse_all, softmax_all = log_softmax_sums(similarities, pairs.positive | pairs.negative, scale)
        counted = lse_positives > -torch.inf  # anchors that have a positive

        # the value: −log of the ratio of the two sums
        value = torch.where(counted, lse_all - lse_positives, 0.0).sum() / anchors

        # the pair weights ∂L/∂S: softmax over all others minus softmax over the positives, divided by T and m
        shares = counted.to(similarities.dtype) / anchors
        weights = softmax_all.sub_(softmax_positives).mul_(scale * shares[:, None])
        return weighted(similarities, value, weights)
