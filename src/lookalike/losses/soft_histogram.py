"""Differentiable histograms: every value is shared linearly by the two nodes around it (triangular kernel).

One scatter per node side, O(n²) whatever the number of bins; the gradient is the difference of the two nodes'
gradients.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor


class _SoftHistogram(torch.autograd.Function):
    """A position x between the nodes l and l + 1 adds 1 − (x − l) to the one and x − l to the other."""

    @staticmethod
    def forward(ctx: Any, positions: Tensor, mask: Tensor, nodes: int) -> Tensor:
        lower = positions.floor().to(torch.int64).clamp_(0, nodes - 2)  # an index even for a NaN
        weight = mask.to(positions.dtype)
        upper = (positions - lower).mul_(weight)
        histogram = positions.new_zeros(len(positions), nodes)
        histogram.scatter_add_(1, lower, weight - upper)
        histogram[:, 1:].scatter_add_(1, lower, upper)
        ctx.save_for_backward(lower, mask)
        return histogram

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        lower, mask = ctx.saved_tensors
        slope = gradient.diff(dim=1).gather(1, lower)
        return torch.where(mask, slope, 0.0), None, None


def soft_histogram(positions: Float[Tensor, "n m"], mask: Bool[Tensor, "n m"], nodes: int) -> Float[Tensor, "n nodes"]:
    """Per row, the histogram of the masked positions over nodes 0 … nodes − 1.

    >>> soft_histogram(torch.tensor([[0.0, 1.25, 9.0]]), torch.tensor([[True, True, False]]), 3)
    tensor([[1.0000, 0.7500, 0.2500]])
    """
    result: Tensor = _SoftHistogram.apply(positions, mask, nodes)  # type: ignore[no-untyped-call]
    return result
