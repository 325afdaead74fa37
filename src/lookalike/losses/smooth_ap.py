"""Brown, Xie, Kalogeiton, Zisserman: Smooth-AP: Smoothing the Path Towards Large-Scale Image Retrieval, ECCV 2020,
eq. 5 [math A22].

AP_i = (1/|P|) Σ_p (1 + Σ_{q ∈ P, q ≠ p} σ((S_q − S_p)/T)) / (1 + Σ_{k ≠ p} σ((S_k − S_p)/T)), L = 1 − mean over
anchors. Only |P| × n comparisons per anchor are made, a chunk of positives at a time. See also: fastap.
"""

from functools import partial

import torch
from torch import Tensor, nn

from lookalike.errors import check
from lookalike.geometry import Geometry, check_geometry, compare
from lookalike.reductions import CHUNK, in_chunks, mean_where
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Value, as_pairs, taint


class SmoothAP(nn.Module):
    """Raises the average precision of every anchor's ranking, with a sigmoid in place of each comparison of ranks.

    temperature: T, which divides differences of similarity; the smaller, the closer to average precision itself.
    normalise: where embeddings are compared: "sphere", "ball" or "none".
    """

    def __init__(self, temperature: float = 0.01, normalise: Geometry = "sphere") -> None:
        super().__init__()
        check(temperature > 0, f"temperature must be positive, not {temperature}")
        self.temperature, self.normalise = temperature, check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        pairs = as_pairs(targets, embeddings, candidates)
        similarities = compare(embeddings, candidates, self.normalise)
        return self.of_similarities(similarities, pairs) + taint(embeddings, candidates)

    def of_similarities(self, similarities: Similarities, pairs: Pairs) -> Value:
        slots, filled = pairs.slots()
        logits = similarities / self.temperature
        own = logits.gather(1, slots)
        ratios = partial(self._ratios, logits, own, pairs.positive | pairs.negative, filled)
        step = max(1, CHUNK // max(1, similarities.numel()))
        width = slots.shape[1]
        total = ratios(slice(width)) if step >= width else in_chunks(ratios, width, step)
        precision = total / filled.sum(1).clamp(min=1)
        return mean_where(1 - precision, filled.any(1))

    def _ratios(self, logits: Tensor, own: Tensor, everyone: Tensor, filled: Tensor, part: slice) -> Tensor:
        """Σ over the positives p in this part of the slots of rank among positives / rank among all."""
        here = own[:, part, None]
        # σ(0) = ½ stands for p itself, so ½ + Σ counts 1 + everyone else
        among_positives = 0.5 + self._passed(own[:, None, :] - here, filled[:, None, :])
        among_all = 0.5 + self._passed(logits[:, None, :] - here, everyone[:, None, :])
        return torch.where(filled[:, part], among_positives / among_all, 0.0).sum(1)

    def _passed(self, differences: Tensor, mask: Tensor) -> Tensor:
        # beyond ±80 the sigmoid is 0 or 1 to the last digit, and its exponentials are slow
        above = differences.clamp(-80, 80).sigmoid()
        return torch.where(mask, above, 0.0).sum(2)
