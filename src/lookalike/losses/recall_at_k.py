"""Patel, Tolias, Matas: Recall@k Surrogate Loss with Large Batches and Similarity Mixup, CVPR 2022 [math A24l].

r_p = 1 + Σ_{j ≠ p} σ((S_j − S_p)/τ2), the rank of a positive; L = mean over anchors and over k of
1 − Σ_p σ((k − r_p)/τ1) / min(k, |P|).

Departs from the paper: divided by min(k, |P|) as in the released code, not by |P|, so that a perfect ranking is worth
the same at every k. See also: smooth_ap, pnp, top_k_precision.
"""

from collections.abc import Sequence

import torch
from torch import nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check, check_positive
from lookalike.geometry import Geometry, check_geometry
from lookalike.loss_inputs import slots_of_positives, value_of_pairs
from lookalike.losses.soft_ranks import passed
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Value


class RecallAtK(nn.Module):
    """Lifts positives into the first k of every anchor's ranking, for several k at once, with sigmoids for both steps.

    k: one number of neighbours or several, over which the loss is averaged.
    temperature: τ2, which divides differences of similarity; the smaller, the closer to the ranks themselves.
    k_temperature: τ1, which divides the distance of a rank from k; the smaller, the fewer positives are moved.
    normalise: where embeddings are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(
        self,
        k: int | Sequence[int] = (1, 2, 4, 8, 16),
        temperature: float = 0.01,
        k_temperature: float = 1.0,
        normalise: Geometry = "sphere",
    ) -> None:
        super().__init__()
        self.k = (k,) if isinstance(k, int) else tuple(k)
        check(len(self.k) > 0 and min(self.k) >= 1, f"k must be at least 1, not {k}")
        check_positive(temperature=temperature, k_temperature=k_temperature)
        self.temperature, self.k_temperature = temperature, k_temperature
        self.normalise = check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        return value_of_pairs(self, embeddings, targets, candidates)

    def of_similarities(self, similarities: Similarities, pairs: Pairs) -> Value:
        slots, filled = slots_of_positives(pairs)
        logits = similarities / self.temperature
        # σ(0) = ½ stands for p itself, so ½ + Σ counts 1 + everyone else
        ranks = 0.5 + passed(logits, logits.gather(1, slots), pairs.positive | pairs.negative)
        positives = filled.sum(1)
        recall = torch.zeros_like(positives, dtype=ranks.dtype)
        for k in self.k:
            inside = torch.where(filled, ((k - ranks) / self.k_temperature).sigmoid(), 0.0).sum(1)
            recall = recall + inside / positives.clamp(1, k)
        terms = torch.where(positives > 0, 1 - recall / len(self.k), 0.0)
        return terms.sum() / (positives > 0).sum().clamp(min=1)
