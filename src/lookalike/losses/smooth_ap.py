"""Brown, Xie, Kalogeiton, Zisserman: Smooth-AP: Smoothing the Path Towards Large-Scale Image Retrieval, ECCV 2020,
eq. 5 [math A22].

AP_i = (1/|P|) Σ_p (1 + Σ_{q ∈ P, q ≠ p} σ((S_q − S_p)/T)) / (1 + Σ_{k ≠ p} σ((S_k − S_p)/T)), L = 1 − mean over
anchors. See also: fastap, pnp, recall_at_k.
"""

import torch
from torch import nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check_positive
from lookalike.geometry import Geometry, check_geometry
from lookalike.loss_inputs import slots_of_positives, value_of_pairs
from lookalike.losses.soft_ranks import passed
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Value


class SmoothAP(nn.Module):
    """Raises the average precision of every anchor's ranking, with a sigmoid in place of each comparison of ranks.

    temperature: T, which divides differences of similarity; the smaller, the closer to average precision itself.
    normalise: where embeddings are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(self, temperature: float = 0.01, normalise: Geometry = "sphere") -> None:
        super().__init__()
        check_positive(temperature=temperature)
        self.temperature, self.normalise = temperature, check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        return value_of_pairs(self, embeddings, targets, candidates)

    def of_similarities(self, similarities: Similarities, pairs: Pairs) -> Value:
        slots, filled = slots_of_positives(pairs)
        logits = similarities / self.temperature
        own = logits.gather(1, slots)
        # σ(0) = ½ stands for p itself, so ½ + Σ counts 1 + everyone else
        among_positives = 0.5 + passed(own, own, filled)
        among_all = 0.5 + passed(logits, own, pairs.positive | pairs.negative)
        positives = filled.sum(1)
        precision = torch.where(filled, among_positives / among_all, 0.0).sum(1) / positives.clamp(min=1)
        return torch.where(positives > 0, 1 - precision, 0.0).sum() / (positives > 0).sum().clamp(min=1)
