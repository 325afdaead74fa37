"""Khosla et al.: Supervised Contrastive Learning, NeurIPS 2020, eq. 2 (L_out).

L = mean over anchors of −(1/|P|) Σ_p [ S_p/T − lse_{k ≠ i} S_k/T ]. See also: nca, info_nce.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lookalike.errors import check
from lookalike.geometry import Geometry, check_geometry, compare
from lookalike.reductions import log_softmax_sums, weighted
from lookalike.targets import Pairs, Targets, as_pairs


class SupCon(nn.Module):
    """Spreads an anchor's soft neighbourhood evenly over its positives, against everything else in the batch."""

    def __init__(
        self,
        temperature: float = 0.1,  # T
        normalise: Geometry = "sphere",
    ) -> None:
        super().__init__()
        check(0 < temperature < torch.inf, f"temperature must be positive, not {temperature}")
        self.temperature, self.normalise = temperature, check_geometry(normalise)

    def forward(
        self, embeddings: Float[Tensor, "n d"], targets: Targets, candidates: Float[Tensor, "m d"] | None = None
    ) -> Float[Tensor, ""]:
        pairs = as_pairs(targets, embeddings, candidates)
        return self.of_similarities(compare(embeddings, candidates, self.normalise), pairs)

    def of_similarities(self, similarities: Float[Tensor, "n m"], pairs: Pairs) -> Float[Tensor, ""]:
        scale, values = 1 / self.temperature, similarities.detach()
        all_others, among_all = log_softmax_sums(values, pairs.positive | pairs.negative, scale)
        evenly = pairs.positive.to(values.dtype)
        evenly.div_(evenly.sum(1, keepdim=True).clamp_(min=1))
        counted = pairs.positive.any(1).to(values.dtype)
        counted = counted / counted.sum().clamp(min=1)
        terms = all_others - scale * (evenly * values).sum(1)
        value = torch.where(counted > 0, terms * counted, 0.0).sum()
        return weighted(similarities, value, among_all.sub_(evenly).mul_(scale * counted[:, None]))
