"""Roth, Milbich, Sinha, Gupta, Ommer, Cohen: Revisiting Training Strategies, ICML 2020, sec. 5 (ρ-regularisation)
[math D.2].

With probability p an anchor's triplet becomes (a, a, p′): a true positive p′ stands where the negative does, so that
the loss pushes it away a little and keeps the class from collapsing: a flatter spectrum. For tuple losses.
"""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from lookalike.choices import pick
from lookalike.errors import check
from lookalike.loss_inputs import as_pairs
from lookalike.miners.distance_weighted import DistanceWeighted
from lookalike.targets import Targets, Triplets


@dataclass
class Switched:
    """Distance-weighted triplets, some of them switched: a positive instead of the negative.

    probability: how often that happens to a triplet.
    upper_cutoff: the distance beyond which no negative is drawn; None: there is none.
    """

    probability: float = 0.2  # p_switch
    upper_cutoff: float | None = None
    generator: torch.Generator | None = field(default=None, repr=False)
    _miner: DistanceWeighted = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check(0 <= self.probability <= 1, f"probability must lie between 0 and 1, not {self.probability}")
        self._miner = DistanceWeighted(upper_cutoff=self.upper_cutoff, generator=self.generator)

    @torch.no_grad()
    def __call__(self, embeddings: Float[Tensor, "n d"], targets: Targets) -> Triplets:
        pairs = as_pairs(targets, embeddings)
        mined = self._miner(embeddings, pairs)
        draws = torch.rand(len(embeddings), generator=self.generator, device=embeddings.device)
        switched = draws < self.probability
        return Triplets(
            anchor=mined.anchor,
            positive=torch.where(switched, mined.anchor, mined.positive),
            negative=torch.where(switched, pick(pairs.positive, self.generator), mined.negative),
            valid=torch.where(switched, pairs.positive.any(1), mined.valid),
            labels=mined.labels,
        )
