"""Wang, Han, Huang, Dong, Scott: Multi-Similarity Loss with General Pair Weighting, CVPR 2019, eq. 11-12
[math A10, B.6].

A negative is informative if it is more similar than the least similar positive minus ε, a positive if it is less
similar than the most similar negative plus ε. Any pair loss after this miner is the "_m" variant of the paper's
ablation.
"""

from dataclasses import dataclass

import torch

from lookalike.geometry import Geometry, check_geometry, compare
from lookalike.loss_inputs import as_pairs, informative
from lookalike.targets import Candidates, Embeddings, Pairs, Targets


@dataclass
class MultiSimilarity:
    """The pairs of every anchor that its hardest pair of the other kind makes informative.

    margin: ε, by which a pair may be easier than the hardest of the other kind and still count.
    """

    margin: float = 0.1  # ε
    normalise: Geometry = "sphere"

    def __post_init__(self) -> None:
        check_geometry(self.normalise)

    @torch.no_grad()
    def __call__(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Pairs:
        pairs = as_pairs(targets, embeddings, candidates)
        return informative(pairs, compare(embeddings, candidates, self.normalise), self.margin)
