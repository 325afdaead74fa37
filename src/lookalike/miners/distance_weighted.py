"""Wu, Manmatha, Smola, Krähenbühl: Sampling Matters in Deep Embedding Learning, ICCV 2017; Revisiting, eq. 23-24
[math B.4].

log w = −(D − 2) log d − ((D − 3)/2) log(1 − d²/4), the inverse density of distances between random points of the
sphere.

Departs from the paper: d²/4 under the second logarithm [math ERR-24]; the cut-off λ bounds the distance from below,
not the weight [math ERR-25]. Weights are compared per anchor, in log space: a near-duplicate of one anchor cannot
starve the others.
"""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from lookalike.choices import fallback, largest, pick
from lookalike.errors import check
from lookalike.geometry import distances_between
from lookalike.loss_inputs import as_pairs
from lookalike.targets import Candidates, Embeddings, Targets, Triplets


@dataclass
class DistanceWeighted:
    """A uniform positive, and a negative drawn so that all distances on the sphere come up equally often.

    lower_cutoff: nearer negatives count as if they were at this distance: their weights would explode.
    upper_cutoff: farther negatives are not drawn; None: all are.
    """

    lower_cutoff: float = 0.5
    upper_cutoff: float | None = None  # 1.4 in the text, None in the released code
    generator: torch.Generator | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check(0 < self.lower_cutoff < 2, f"lower_cutoff is a distance between 0 and 2, not {self.lower_cutoff}")
        upper = self.upper_cutoff
        check(upper is None or upper > 0, f"upper_cutoff is a positive distance or None, not {upper}")

    @torch.no_grad()
    def __call__(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Triplets:
        pairs = as_pairs(targets, embeddings, candidates)
        apart = distances_between(embeddings, candidates, "sphere")
        eligible = pairs.negative
        if self.upper_cutoff is not None:
            close = eligible & (apart <= self.upper_cutoff)
            # where no negative is close, every one weighs the same
            apart = torch.where(close.any(1, keepdim=True), apart, 1.0)
            eligible = fallback(close, eligible)
        # the largest of log w + Gumbel noise is a draw with probability proportional to w
        noise = torch.empty_like(apart).exponential_(generator=self.generator).log_().neg_()
        scores = self.log_weights(apart, embeddings.shape[1]) + noise
        return Triplets.of(pairs, pick(pairs.positive, self.generator), largest(scores, eligible))

    def log_weights(self, apart: Float[Tensor, "n m"], dim: int) -> Float[Tensor, "n m"]:
        """log w of the distances `apart` on the unit sphere of `dim` dimensions."""
        bounded = apart.clamp(min=self.lower_cutoff)
        return -(dim - 2) * bounded.log() - (dim - 3) / 2 * (1 - bounded.square() / 4).clamp(min=1e-8).log()
