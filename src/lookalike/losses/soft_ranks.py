"""Ranks with a sigmoid in place of each comparison: how many candidates have passed a positive, softly counted.

|P| × n comparisons per anchor, a chunk of positives at a time, computed again in the backward pass: no n³ tensor.
"""

from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from lookalike.reductions import CHUNK


def _sigmoids(logits: Tensor, own: Tensor, mask: Tensor) -> Iterator[tuple[slice, Tensor]]:
    """σ(x_k − x_p) of the masked k, 0 for the others, for a few positives p of every anchor at a time."""
    step = max(1, CHUNK // max(1, logits.numel()))
    hidden = ~mask[:, None, :]
    for start in range(0, own.shape[1], step):
        part = slice(start, start + step)
        # beyond ±80 the sigmoid is 0 or 1 to the last digit, and its exponentials are slow
        above = (logits[:, None, :] - own[:, part, None]).clamp_(-80, 80).sigmoid_()
        yield part, above.masked_fill_(hidden, 0.0)


class _Passed(torch.autograd.Function):
    """Σ_k σ(x_k − x_p), with slope σ (1 − σ) in x_k and minus the sum of these in x_p."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, own: Tensor, mask: Tensor) -> Tensor:
        ctx.save_for_backward(logits, own, mask)
        passed = torch.zeros_like(own)
        for part, above in _sigmoids(logits, own, mask):
            passed[:, part] = above.sum(2)
        return passed

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        logits, own, mask = ctx.saved_tensors
        of_logits, of_own = torch.zeros_like(logits), torch.zeros_like(own)
        for part, above in _sigmoids(logits, own, mask):
            slopes = torch.addcmul(above, above, above, value=-1).mul_(gradient[:, part, None])
            of_logits += slopes.sum(1)
            of_own[:, part] = -slopes.sum(2)
        return of_logits, of_own, None


def passed(logits: Float[Tensor, "n m"], own: Float[Tensor, "n p"], mask: Bool[Tensor, "n m"]) -> Float[Tensor, "n p"]:
    """How many of the masked candidates of each row lie above its p-th own value, softly: Σ_k σ(x_k − x_p).

    >>> passed(torch.tensor([[90.0, 0.0, -90.0]]), torch.tensor([[0.0, 9.0]]), torch.tensor([[True, True, True]]))
    tensor([[1.5000, 1.0001]])
    """
    result: Tensor = _Passed.apply(logits, own, mask)  # type: ignore[no-untyped-call]
    return result
