"""Goldberger, Roweis, Hinton, Salakhutdinov: Neighbourhood Components Analysis, NeurIPS 2004; Multi-Similarity,
suppl. eq. 1.

L = −(1/m) Σ_i log( Σ_P e^{S/T} / Σ_{k ≠ i} e^{S/T} ).

Departs from the paper: the printed equation lacks the minus sign and sums the denominator over i instead of k (ERR-13).
See also: supcon (mean of logs instead of log of the sum), proxy_nca.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lookalike.errors import check
from lookalike.geometry import Geometry, check_geometry, compare
from lookalike.reductions import log_softmax_sums, weighted
from lookalike.targets import Pairs, Targets, as_pairs


class NCA(nn.Module):
    """Raises the chance that a soft nearest neighbour of the anchor is one of its positives."""

    def __init__(
        self,
        temperature: float = 1.0,  # T
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
        scale, anchors, values = 1 / self.temperature, max(1, len(similarities)), similarities.detach()
        near, among_near = log_softmax_sums(values, pairs.positive, scale)
        all_others, among_all = log_softmax_sums(values, pairs.positive | pairs.negative, scale)
        value = torch.where(near > -torch.inf, all_others - near, 0.0).sum() / anchors
        counted = (near > -torch.inf).to(values.dtype) / anchors
        return weighted(similarities, value, among_all.sub_(among_near).mul_(scale * counted[:, None]))
