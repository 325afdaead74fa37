"""Wang, Han, Huang, Dong, Scott: Multi-Similarity Loss with General Pair Weighting, CVPR 2019, eq. 11-12
[math A10, B.6].

A negative is informative if it is more similar than the least similar positive minus ε, a positive if it is less
similar than the most similar negative plus ε. Any pair loss after this miner is the "_m" variant of the paper's
ablation.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from lookalike.geometry import Geometry, check_geometry, compare
from lookalike.targets import Pairs, Targets, as_pairs


def informative(similarities: Float[Tensor, "n m"], pairs: Pairs, margin: float) -> Pairs:
    """The pairs on the wrong side of, or within a margin of, the hardest pair of the other kind.

    >>> pairs = Pairs(torch.tensor([[True, False, False]]), torch.tensor([[False, True, True]]))
    >>> informative(torch.tensor([[0.5, 0.45, 0.1]]), pairs, margin=0.1).negative
    tensor([[False,  True, False]])
    """
    if not similarities.shape[1]:
        return pairs
    least_positive = torch.where(pairs.positive, similarities, torch.inf).amin(1, keepdim=True)
    most_negative = torch.where(pairs.negative, similarities, -torch.inf).amax(1, keepdim=True)
    return replace(
        pairs,
        positive=pairs.positive & (similarities < most_negative + margin),
        negative=pairs.negative & (similarities > least_positive - margin),
    )


@dataclass
class MultiSimilarity:
    """The pairs of every anchor that its hardest pair of the other kind makes informative."""

    margin: float = 0.1  # ε
    normalise: Geometry = "sphere"

    def __post_init__(self) -> None:
        check_geometry(self.normalise)

    @torch.no_grad()
    def __call__(
        self, embeddings: Float[Tensor, "n d"], targets: Targets, candidates: Float[Tensor, "m d"] | None = None
    ) -> Pairs:
        pairs = as_pairs(targets, embeddings, candidates)
        return informative(compare(embeddings, candidates, self.normalise), pairs, self.margin)
