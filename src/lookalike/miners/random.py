"""Uniform sampling, the baseline of Revisiting Training Strategies (Roth et al., ICML 2020), sec. B [math B.1]."""

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from lookalike.choices import pick
from lookalike.errors import check
from lookalike.loss_inputs import as_pairs
from lookalike.targets import Candidates, Embeddings, Pairs, Targets, Triplets


@dataclass
class Random:
    """One uniform positive and one uniform negative per anchor.

    `mode="roth"` draws as many triplets as there are samples from the list of all triplets, without replacement, as the
    released code does: anchors with more partners come up more often.
    """

    mode: Literal["per_anchor", "roth"] = "per_anchor"
    generator: torch.Generator | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check(self.mode in ("per_anchor", "roth"), f"mode must be 'per_anchor' or 'roth', not {self.mode!r}")

    @torch.no_grad()
    def __call__(self, embeddings: Embeddings, targets: Targets, candidates: Candidates = None) -> Triplets:
        pairs = as_pairs(targets, embeddings, candidates)
        if self.mode == "roth":
            return self._from_all(pairs)
        return Triplets.of(pairs, pick(pairs.positive, self.generator), pick(pairs.negative, self.generator))

    def _from_all(self, pairs: Pairs) -> Triplets:
        """Numbers all triplets anchor by anchor, draws distinct numbers and decodes them, without listing them all."""
        count = len(pairs.positive)
        positives, negatives = pairs.positive.sum(1), pairs.negative.sum(1)
        ends = (positives * negatives).cumsum(0)
        numbers = self._distinct(int(ends[-1]) if count else 0, count).to(ends.device)
        valid = torch.arange(count, device=ends.device) < len(numbers)
        numbers = torch.nn.functional.pad(numbers, (0, count - len(numbers)))
        anchor = torch.searchsorted(ends, numbers, right=True).clamp(max=max(0, count - 1))
        place = numbers - (ends - positives * negatives)[anchor]
        each = negatives[anchor].clamp(min=1)
        return Triplets(
            anchor=anchor,
            positive=_nth(pairs.positive[anchor], place // each),
            negative=_nth(pairs.negative[anchor], place % each),
            valid=valid,
            labels=pairs.candidate_labels,
        )

    def _distinct(self, total: int, count: int) -> Tensor:
        """Up to `count` distinct numbers below `total`, uniformly: the first distinct ones of an endless sequence."""
        if total <= 4 * count:
            return torch.randperm(total, generator=self.generator)[:count]
        numbers = torch.empty(0, dtype=torch.int64)
        while len(numbers) < count:
            numbers = torch.cat([numbers, torch.randint(total, (count,), generator=self.generator)])
            unique, place = torch.unique(numbers, return_inverse=True)
            first = torch.full_like(unique, len(numbers)).scatter_reduce_(0, place, torch.arange(len(numbers)), "amin")
            numbers = numbers[first.sort().values]
        return numbers[:count]


def _nth(choices: Tensor, place: Tensor) -> Tensor:
    """The column of the place-th (from 0) true entry of every row."""
    columns = torch.searchsorted(choices.cumsum(1), place[:, None] + 1).squeeze(1)
    return columns.clamp(max=max(0, choices.shape[1] - 1))
