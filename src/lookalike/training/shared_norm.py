"""Batch normalisation over the batch of all processes (Ioffe, Szegedy, ICML 2015, with the statistics of the whole
batch; torch's own SyncBatchNorm runs on GPUs only).
"""

from typing import Any

import torch
import torch.distributed as dist
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from lookalike.processes import all_present


class _Sum(torch.autograd.Function):
    """Sums over processes; what one process puts in, all of them use, so gradients are summed likewise."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:  # noqa: ARG004
        total = values.clone()
        with all_present():
            dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # noqa: ARG004
        total = gradient.contiguous().clone()
        with all_present():
            dist.all_reduce(total)
        return total


class SharedBatchNorm(_BatchNorm):
    """As torch's, with mean and variance over the shares of all processes while it trains."""

    def _check_input_dim(self, input: Tensor) -> None:
        pass

    def forward(self, input: Float[Tensor, "n c *space"]) -> Float[Tensor, "n c *space"]:
        if not self.training:
            return super().forward(input)
        axes = [0, *range(2, input.dim())]
        shape = [1, -1] + [1] * (input.dim() - 2)
        count = input.numel() // input.shape[1] * dist.get_world_size()
        mean: Tensor = _Sum.apply(input.sum(axes)) / count  # type: ignore[no-untyped-call]
        centred = input - mean.view(shape)
        variance: Tensor = _Sum.apply(centred.square().sum(axes)) / count  # type: ignore[no-untyped-call]
        self._remember(mean.detach(), variance.detach() * count / max(1, count - 1))
        result = centred * (variance + self.eps).rsqrt().view(shape)
        return result if self.weight is None else result * self.weight.view(shape) + self.bias.view(shape)

    @torch.no_grad()
    def _remember(self, mean: Tensor, variance: Tensor) -> None:
        if self.running_mean is not None and self.running_var is not None and self.momentum is not None:
            self.running_mean.lerp_(mean.to(self.running_mean.dtype), self.momentum)
            self.running_var.lerp_(variance.to(self.running_var.dtype), self.momentum)
        if self.num_batches_tracked is not None:
            self.num_batches_tracked += 1


def share_statistics(module: nn.Module) -> None:
    """Let every batch normalisation in a network see all processes; its parameters and names stay the same."""
    for name, child in module.named_children():
        if isinstance(child, _BatchNorm) and not isinstance(child, SharedBatchNorm):
            setattr(module, name, _shared(child))
        else:
            share_statistics(child)


def _shared(norm: _BatchNorm) -> SharedBatchNorm:
    shared = SharedBatchNorm(norm.num_features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats)
    shared.weight, shared.bias = norm.weight, norm.bias
    shared.running_mean, shared.running_var = norm.running_mean, norm.running_var
    shared.num_batches_tracked, shared.training = norm.num_batches_tracked, norm.training
    return shared
