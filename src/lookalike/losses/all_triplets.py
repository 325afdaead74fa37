"""Sums over all triplets of a batch, exactly, without the cube of them.

For one anchor with values x (small = similar), Σ_p Σ_n [x_p − x_n + g]_+ needs only the positives in order: the
positives active against a negative are the largest few, so one search and one prefix sum per negative give sum, count
and gradient in O(n² log p) time and O(n²) memory. A smooth term has no such order: its n² p terms are added in chunks.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from lookalike.loss_inputs import slots_of_positives
from lookalike.reductions import CHUNK, in_chunks, softplus
from lookalike.targets import Pairs


class _HingeSums(torch.autograd.Function):
    """Value by prefix sums; pair weights by counting the active triplets a pair is in, as positive + or negative −."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, positive: Tensor, negative: Tensor, margin: float) -> tuple[Tensor, Tensor]:
        width = max(1, int(positive.sum(1).max()))
        attracted, columns = torch.where(positive, values, -torch.inf).topk(width, dim=1)
        limits = torch.where(negative, values - margin, torch.inf)
        # how many positives of the row lie above each limit: 0 where the column is not a negative
        active = width - torch.searchsorted(attracted.flip(1), limits, right=True)
        filled = attracted.masked_fill(attracted.isinf(), 0)
        prefix = torch.nn.functional.pad(filled.cumsum(1), (1, 0))
        counts = active.to(values.dtype)
        total = (prefix.gather(1, active) + counts * (margin - values)).sum()

        per_slot = values.new_zeros(len(values), width + 1).scatter_add_(1, active, torch.ones_like(values))
        reached = per_slot.flip(1).cumsum(1).flip(1)[:, 1:]
        ctx.save_for_backward(counts.neg_().scatter_add_(1, columns, reached))
        number = active.sum()
        ctx.mark_non_differentiable(number)
        return total, number

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor, None, None, None]:
        (slopes,) = ctx.saved_tensors
        return slopes * gradient, None, None, None


def hinge_sums(values: Float[Tensor, "n m"], pairs: Pairs, margin: float) -> tuple[Tensor, Tensor]:
    """Σ [x_ap − x_an + g]_+ over all triplets (a, p, n) of the pairs, and how many terms are positive.

    >>> pairs = Pairs.within(torch.tensor([0, 0, 1]))
    >>> hinge_sums(torch.tensor([[0.0, 3.0, 2.0], [3.0, 0.0, 9.0], [2.0, 9.0, 0.0]]), pairs, margin=1.0)
    (tensor(2.), tensor(1))
    """
    if not values.numel():
        return values.sum(), torch.zeros((), dtype=torch.int64)
    total, number = _HingeSums.apply(values, pairs.positive, pairs.negative, margin)  # type: ignore[no-untyped-call]
    return total, number


def softplus_sums(values: Float[Tensor, "n m"], pairs: Pairs, margin: float) -> tuple[Tensor, Tensor]:
    """Σ log(1 + e^{x_ap − x_an + g}) over all triplets (a, p, n) of the pairs, and how many there are.

    >>> softplus_sums(torch.tensor([[0.0, 1.0, 1.0], [1.0, 0.0, 9.0], [1.0, 9.0, 0.0]]), Pairs.within([0, 0, 1]), 0.0)
    (tensor(0.6935), tensor(2))
    """
    slots, filled = slots_of_positives(pairs)
    near = values.gather(1, slots)

    def of_slots(part: slice) -> Tensor:
        gaps = near[:, part, None] - values[:, None] + margin
        return torch.where(filled[:, part, None] & pairs.negative[:, None], softplus(gaps), 0.0).sum()

    step, width = max(1, CHUNK // max(1, values.numel())), slots.shape[1]
    total = of_slots(slice(width)) if step >= width else in_chunks(of_slots, width, step)
    return total, (pairs.positive.sum(1) * pairs.negative.sum(1)).sum()
