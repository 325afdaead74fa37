"""Hermans, Beyer, Leibe: In Defense of the Triplet Loss, 2017 (batch-hard); "Hard Mining" of Sampling Wisely
[math B.5].
"""

from dataclasses import dataclass, replace

import torch

from lookalike.choices import largest
from lookalike.geometry import Geometry, check_geometry, distances_between
from lookalike.loss_inputs import as_pairs
from lookalike.targets import Candidates, Embeddings, Pairs, Targets, Triplets


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
    def __call__(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Triplets | Pairs:
        pairs = as_pairs(targets, embeddings, candidates)
        apart = distances_between(embeddings, candidates, self.normalise)
        if not self.nearest:
            return Triplets.of(pairs, largest(apart, pairs.positive), largest(-apart, pairs.negative))
        count = int(pairs.positive.sum(1).max()) if len(apart) else 0
        to_negative = torch.where(pairs.negative, apart, torch.inf)
        nearest = to_negative.topk(min(count, apart.shape[1]), largest=False).indices
        mask = torch.zeros_like(pairs.negative).scatter_(1, nearest, True)
        return replace(pairs, negative=pairs.negative & mask)
