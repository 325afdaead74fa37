"""Uniform sampling, the baseline of Revisiting Training Strategies (Roth et al., ICML 2020), sec. B; SPEC B.1."""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from lookalike.errors import check
from lookalike.targets import Pairs, Targets, Triplets, as_pairs, pick


@dataclass
class Random:
    """One uniform positive and one uniform negative per anchor.

    `mode="roth"` draws as many triplets as there are samples from the list of all triplets, without replacement, as the
    released code does: anchors with more partners come up more often.
    """

    mode: Literal["per_anchor", "roth"] = "per_anchor"
    generator: torch.Generator | None = None

    def __post_init__(self) -> None:
        check(self.mode in ("per_anchor", "roth"), f"mode must be 'per_anchor' or 'roth', not {self.mode!r}")

    @torch.no_grad()
    def __call__(
        self, embeddings: Float[Tensor, "n d"], targets: Targets, candidates: Float[Tensor, "m d"] | None = None
    ) -> Triplets:
        pairs = as_pairs(targets, embeddings, candidates)
        if self.mode == "roth":
            return self._from_all(pairs)
        return Triplets(
            anchor=torch.arange(len(embeddings), device=embeddings.device),
            positive=pick(pairs.positive, self.generator),
            negative=pick(pairs.negative, self.generator),
            valid=pairs.positive.any(1) & pairs.negative.any(1),
            labels=pairs.candidate_labels,
        )

    def _from_all(self, pairs: Pairs) -> Triplets:
        """Numbers all triplets anchor by anchor, draws distinct numbers and decodes them; the list is never made."""
        wanted = len(pairs.positive)
        positives, negatives = pairs.positive.sum(1), pairs.negative.sum(1)
        ends = (positives * negatives).cumsum(0)
        drawn = self._distinct(int(ends[-1]) if wanted else 0, wanted).to(ends.device)
        valid = torch.arange(wanted, device=ends.device) < len(drawn)
        numbers = torch.nn.functional.pad(drawn, (0, wanted - len(drawn)))
        anchor = torch.searchsorted(ends, numbers, right=True).clamp(max=max(0, wanted - 1))
        place = numbers - (ends - positives * negatives)[anchor]
        each = negatives[anchor].clamp(min=1)
        return Triplets(
            anchor=anchor,
            positive=_nth(pairs.positive[anchor], place // each),
            negative=_nth(pairs.negative[anchor], place % each),
            valid=valid,
            labels=pairs.candidate_labels,
        )

    def _distinct(self, total: int, wanted: int) -> Tensor:
        """Up to `wanted` distinct numbers below `total`, uniformly: the first distinct ones of an endless sequence."""
        if total <= 4 * wanted:
            return torch.randperm(total, generator=self.generator)[:wanted]
        drawn = torch.randint(total, (0,))
        while len(drawn) < wanted:
            drawn = torch.cat([drawn, torch.randint(total, (wanted,), generator=self.generator)])
            unique, place = torch.unique(drawn, return_inverse=True)
            first = torch.full_like(unique, len(drawn)).scatter_reduce_(0, place, torch.arange(len(drawn)), "amin")
            drawn = drawn[first.sort().values]
        return drawn[:wanted]


def _nth(choices: Tensor, place: Tensor) -> Tensor:
    """The column of the place-th (from 0) true entry of every row."""
    columns = torch.searchsorted(choices.cumsum(1), place[:, None] + 1).squeeze(1)
    return columns.clamp(max=choices.shape[1] - 1)
