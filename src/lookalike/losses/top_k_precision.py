"""Lu, Xu, Zhang, Duan, Mei: Sampling Wisely: Deep Image Embedding by Top-k Precision Optimization, ICCV 2019
[math A17].

With s̃ = s + γ on negatives, ℓ_k = topsum_k(s̃) − topsum_{min(k, n+)}(s of positives) − topsum_{(k − n+)_+}(s̃ of
negatives), topsum_j the sum of the j largest: zero exactly when the top k hold all the positives they can, with a
margin (Theorems 1-4, see analysis.theorems). L = mean over queries with a positive.

Departs from the paper: the closed form instead of the case distinction over swapped sets, equal to it
[math ERR-21]. The paper fixes neither score nor values: cosine, k = 4, γ = 0.1.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lookalike.catalog import records_settings, shown_settings
from lookalike.errors import check_at_least
from lookalike.geometry import Geometry, check_geometry
from lookalike.loss_inputs import value_of_pairs
from lookalike.reductions import mean_where
from lookalike.targets import Candidates, Embeddings, Pairs, Similarities, Targets, Value


def top_sum(values: Float[Tensor, "n m"], mask: Tensor, counts: Tensor, most: int) -> Float[Tensor, " n"]:
    """The sum of the `counts` (at most `most`) largest masked values of every row."""
    largest = torch.where(mask, values, -torch.inf).topk(min(most, values.shape[1]), dim=1).values
    counted = (torch.arange(largest.shape[1], device=values.device) < counts[:, None]) & ~largest.isinf()
    return torch.where(counted, largest, 0.0).sum(1)


class TopKPrecision(nn.Module):
    """Swaps the worst intruders among the k nearest for the best positives left outside, and nothing else.

    k: how many nearest neighbours the precision is counted in.
    margin: γ, by which positives must be more similar than negatives.
    normalise: where embeddings are compared: "sphere", "ball" or "none".
    """

    extra_repr = shown_settings

    @records_settings
    def __init__(self, k: int = 4, margin: float = 0.1, normalise: Geometry = "sphere") -> None:
        super().__init__()
        check_at_least(1, k=k)
        check_at_least(0, margin=margin)
        self.k, self.margin, self.normalise = k, margin, check_geometry(normalise)

    def forward(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Value:
        return value_of_pairs(self, embeddings, targets, candidates)

    def of_similarities(self, similarities: Similarities, pairs: Pairs) -> Value:
        relevant = pairs.positive.sum(1)
        return mean_where(self.per_query(similarities, pairs), relevant > 0)

    def per_query(self, scores: Float[Tensor, "n m"], pairs: Pairs) -> Float[Tensor, " n"]:
        """ℓ_k of every row of `scores`, whose positives and negatives are those of `pairs`."""
        raised = scores + self.margin * pairs.negative.to(scores.dtype)
        relevant, everyone = pairs.positive.sum(1), pairs.positive | pairs.negative
        k = torch.full_like(relevant, self.k)
        nearest = top_sum(raised, everyone, k, self.k)
        best = top_sum(scores, pairs.positive, relevant, self.k)
        rest = top_sum(raised, pairs.negative, k.minimum(everyone.sum(1)) - relevant, self.k)
        return nearest - best - rest
