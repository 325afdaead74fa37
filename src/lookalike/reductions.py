"""What turns a matrix into a number: masked log-sum-exps and means over what is active.

A mask is true where an entry counts. A sum without entries is −∞ in the logarithm and 0 in a mean, and stays in the
graph.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.utils.checkpoint import checkpoint

CHUNK = 2**23  # entries of a chunk: a few buffers of this size are alive at once

# the exponential of anything less is no longer a normal number, and up to 40 times slower to compute
SMALLEST_EXPONENT = {dtype: math.ceil(math.log(torch.finfo(dtype).tiny)) for dtype in (torch.float32, torch.float64)}


class _LogSumExp(torch.autograd.Function):
    """log Σ exp(scale · x) over the masked entries of each row, and the share of each entry in that sum.

    The backward pass reuses the shares: they are the gradient, but for the scale.
    """

    @staticmethod
    def forward(ctx: Any, values: Tensor, mask: Tensor, scale: float) -> tuple[Tensor, Tensor]:
        ctx.scale = scale
        ctx.set_materialize_grads(False)  # no matrix of zeros for the shares, which have no gradient
        if not values.shape[-1]:
            sums, shares = values.sum(-1) - torch.inf, values.clone()  # no column at all: an empty batch
        else:
            shifted = torch.where(mask, values, -torch.inf if scale > 0 else torch.inf)
            if scale != 1:
                shifted.mul_(scale)
            peak = shifted.amax(-1, keepdim=True)
            peak = torch.where(peak.isinf(), 0.0, peak)
            floor = SMALLEST_EXPONENT[values.dtype]
            shares = torch.threshold_(shifted.sub_(peak).clamp_(min=floor).exp_(), 1.5 * math.exp(floor), 0.0)
            total = shares.sum(-1, keepdim=True)
            sums = (total.log() + peak).squeeze(-1)
            shares.div_(torch.where(total > 0, total, 1.0))
        ctx.save_for_backward(shares)
        ctx.mark_non_differentiable(shares)
        return sums, shares

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None, _: None) -> tuple[Tensor | None, None, None]:
        if gradient is None:
            return None, None, None
        (shares,) = ctx.saved_tensors
        return shares * (ctx.scale * gradient)[..., None], None, None


def log_softmax_sums(
    values: Float[Tensor, "*n m"], mask: Bool[Tensor, "..."], scale: float = 1.0
) -> tuple[Float[Tensor, "*n"], Float[Tensor, "*n m"]]:
    """log Σ exp(scale · x) over the masked entries of each row, and the share of each entry in it, without gradient."""
    sums, shares = _LogSumExp.apply(values.detach(), mask, scale)  # type: ignore[no-untyped-call]
    return sums, shares


def log_sum_exp(values: Float[Tensor, "*n m"], mask: Bool[Tensor, "..."], scale: float = 1.0) -> Float[Tensor, "*n"]:
    """Stable log Σ exp(scale · x) over the masked entries of each row; −∞ for a row without any, with gradient 0.

    >>> log_sum_exp(torch.tensor([[0.0, 0.0, 9.0], [1.0, 2.0, 3.0]]), torch.tensor([[True, True, False], [False] * 3]))
    tensor([0.6931,   -inf])
    """
    result: Tensor = _LogSumExp.apply(values, mask, scale)[0]  # type: ignore[no-untyped-call]
    return result


def softplus(values: Tensor) -> Tensor:
    """log(1 + e^x), to the last digit of float64 (torch's own default is exact to 2e-9 only)."""
    normal = torch.nn.functional.threshold(values, SMALLEST_EXPONENT[values.dtype], -torch.inf)
    return torch.nn.functional.softplus(normal, threshold=40)


class _Weighted(torch.autograd.Function):
    """A loss by its value and its pair weights ∂L/∂S in closed form (General Pair Weighting): no graph over pairs."""

    @staticmethod
    def forward(ctx: Any, _: Tensor, value: Tensor, weights: Tensor) -> Tensor:
        ctx.save_for_backward(weights)
        return value.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (weights,) = ctx.saved_tensors
        return weights * gradient, None, None


weighted: Callable[[Tensor, Tensor, Tensor], Tensor] = _Weighted.apply  # (similarities, value, weights) -> loss


def mean_active(hinges: Tensor, mask: Tensor) -> Tensor:
    """The mean over the masked entries that are greater than 0, 0 (still attached to the graph) if there are none.

    >>> mean_active(torch.tensor([0.0, 5.0, 9.0]), torch.tensor([True, True, False]))
    tensor(5.)
    """
    active = torch.where(mask, hinges, 0.0)
    return active.sum() / active.count_nonzero().clamp(min=1)


def mean_where(values: Tensor, mask: Tensor) -> Tensor:
    """The mean over the masked entries, 0 (still attached to the graph) if there are none.

    >>> mean_where(torch.tensor([1.0, 5.0, 9.0]), torch.tensor([True, True, False]))
    tensor(3.)
    """
    return torch.where(mask, values, 0.0).sum() / mask.sum().clamp(min=1)


def in_chunks(term: Callable[[slice], Tensor], width: int, step: int) -> Tensor:
    """Σ term(part) over parts of `step` of `width` columns, each computed again in the backward pass: one is alive.

    >>> in_chunks(lambda part: torch.tensor([1.0, 2.0, 4.0])[part].sum(), width=3, step=2)
    tensor(7.)
    """
    total: Tensor = checkpoint(term, slice(0, step), use_reentrant=False)
    for start in range(step, width, step):
        total = total + checkpoint(term, slice(start, start + step), use_reentrant=False)
    return total
