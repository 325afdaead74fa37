"""Hermans, Beyer, Leibe: In Defense of the Triplet Loss, 2017 (batch-hard); "Hard Mining" of Sampling Wisely; SPEC
B.5.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from lookalike.geometry import Geometry, check_geometry, compare, distances, squares
from lookalike.targets import Pairs, Targets, Triplets, as_pairs


@dataclass
class Hard:
    """The farthest positive and the nearest negative of every anchor.

    `nearest=True` returns pairs instead: all positives, and as many nearest negatives as the largest number of
    positives any anchor has (the released code of Chance Constraints).
    """

    nearest: bool = False
    normalise: Geometry = "sphere"

    def __post_init__(self) -> None:
        check_geometry(self.normalise)

    @torch.no_grad()
    def __call__(
        self, embeddings: Float[Tensor, "n d"], targets: Targets, candidates: Float[Tensor, "m d"] | None = None
    ) -> Triplets | Pairs:
        pairs = as_pairs(targets, embeddings, candidates)
        similarities = compare(embeddings, candidates, self.normalise)
        apart = distances(similarities, squares(embeddings, candidates, self.normalise))
        to_negative = torch.where(pairs.negative, apart, torch.inf)
        if self.nearest:
            count = int(pairs.positive.sum(1).max()) if len(apart) else 0
            chosen = torch.zeros_like(pairs.negative)
            chosen.scatter_(1, to_negative.topk(min(count, apart.shape[1]), largest=False).indices, True)
            return replace(pairs, negative=pairs.negative & chosen)
        return Triplets(
            anchor=torch.arange(len(embeddings), device=embeddings.device),
            positive=torch.where(pairs.positive, apart, -torch.inf).argmax(1),
            negative=to_negative.argmin(1),
            valid=pairs.positive.any(1) & pairs.negative.any(1),
            labels=pairs.candidate_labels,
        )
