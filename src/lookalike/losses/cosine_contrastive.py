"""Gürbüz, Can, Alatan: Deep Metric Learning with Chance Constraints, supplement, loss "C1"; also Cross-Batch Memory,
CVPR 2020 [math A1b].

L = (1/m) Σ_i ( Σ_P [1 − S]_+ + Σ_N [S − λ]_+ ): pairs are summed, anchors averaged. See also: contrastive,
margin_contrastive.
"""

import torch
from torch import nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.geometry import Geometry, check_geometry
from lookalike.loss_inputs import value_of_pairs
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Value


class CosineContrastive(nn.Module):
    """Aligns positives with the anchor and turns negatives away until their cosine falls below a threshold.

    threshold: λ, the similarity below which a negative is left alone.
    normalise: where embeddings are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(self, threshold: float = 0.5, normalise: Geometry = "ball") -> None:
        super().__init__()
        self.threshold, self.normalise = threshold, check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        return value_of_pairs(self, embeddings, targets, candidates)

    def of_similarities(self, similarities: Similarities, pairs: Pairs) -> Value:
        pull = torch.where(pairs.positive, (1 - similarities).relu(), 0.0)
        push = torch.where(pairs.negative, (similarities - self.threshold).relu(), 0.0)
        return (pull + push).sum() / max(1, len(similarities))
