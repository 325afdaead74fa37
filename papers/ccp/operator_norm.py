"""How far a network can stretch: exact operator norms of its linear layers, and their product [math I.6].

Gürbüz, Can, Alatan: Deep Metric Learning with Chance Constraints, supplement, Lemma 4.1. The norm of a layer is found
by power iteration on AᵀA, with the layer's own forward and backward pass: a convolution never becomes a matrix.

Departs from the paper: its bound by column sums alone is wrong [math ERR-41]; the norm is computed instead. Overlapping
maximum pooling counts with √(the windows a pixel lies in), 2 for 3 × 3 with stride 2, where the paper says 1.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lookalike.errors import UserError, check

ITERATIONS = 200
TOLERANCE = 1e-9
LINEAR = (nn.Linear, nn.Conv2d)
SHORTENING = (nn.ReLU, nn.LeakyReLU, nn.Tanh, nn.Flatten, nn.Identity, nn.Dropout)


def operator_norm(
    layer: nn.Module, shape: tuple[int, ...], generator: torch.Generator | None = None, iterations: int = ITERATIONS
) -> float:
    """max ‖Ax‖ / ‖x‖ of the linear part of `layer`, for inputs of `shape` (without the batch).

    `layer`: linear or a convolution. `iterations`: of the power method, at most.

    >>> layer = nn.Linear(2, 1)
    >>> _ = nn.init.constant_(layer.weight, 3.0)
    >>> round(operator_norm(layer, (2,)), 6)  # √2 · 3
    4.242641
    """
    check(isinstance(layer, LINEAR), f"{type(layer).__name__} is not a linear layer: give nn.Linear or nn.Conv2d")
    weight = next(layer.parameters()).detach().double()
    vector = torch.randn(1, *shape, generator=generator, dtype=torch.float64)
    vector, size = vector / vector.norm(), 0.0
    for _ in range(iterations):
        vector.requires_grad_()
        image = _without_bias(layer, weight, vector)
        before, size = size, float(image.detach().norm())
        (back,) = torch.autograd.grad(image, vector, image.detach())
        if size == 0 or size - before <= TOLERANCE * size:
            break
        vector = back / back.norm()
    return size


def _without_bias(layer: nn.Module, weight: Tensor, vector: Tensor) -> Tensor:
    if not isinstance(layer, nn.Conv2d):
        return nn.functional.linear(vector, weight)
    settings: Any = (None, layer.stride, layer.padding, layer.dilation, layer.groups)
    return nn.functional.conv2d(vector, weight, *settings)


@dataclass(frozen=True)
class Stretch:
    """One layer of a network and the most by which it lengthens a difference."""

    layer: str
    constant: float


def lipschitz_bound(
    network: nn.Module, shape: tuple[int, ...], generator: torch.Generator | None = None
) -> list[Stretch]:
    """The constants of the layers of a `network`, a chain in evaluation mode; their product bounds the whole.

    `shape`: of one input, without the batch.

    >>> chain = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)).eval()
    >>> [stretch.layer for stretch in lipschitz_bound(chain, (4,))]
    ['0 Linear', '1 ReLU', '2 Linear']
    """
    check(not network.training, "batch normalisation differs while training: call .eval() first")
    leaves = [(name, layer) for name, layer in network.named_modules() if not list(layer.children())]
    stretches, here = [], torch.zeros(1, *shape)
    for name, layer in leaves:
        stretches.append(Stretch(f"{name} {type(layer).__name__}", _constant(layer, tuple(here.shape[1:]), generator)))
        with torch.no_grad():
            here = layer(here)
    with torch.no_grad():
        whole = network(torch.zeros(1, *shape))
    check(
        whole.shape == here.shape,
        f"{type(network).__name__} is not a chain of layers: norms of branches do not multiply",
    )
    return stretches


def product_of(stretches: list[Stretch]) -> float:
    return math.prod(stretch.constant for stretch in stretches)


def _constant(layer: nn.Module, shape: tuple[int, ...], generator: torch.Generator | None) -> float:
    if isinstance(layer, LINEAR):
        return operator_norm(layer, shape, generator)
    if isinstance(layer, nn.MaxPool2d):
        return math.sqrt(windows_per_pixel(layer))
    if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
        variance, scale = layer.running_var, layer.weight
        if variance is None:
            raise UserError("batch normalisation without running statistics has no constant")
        factors = (variance + layer.eps).rsqrt()
        return float((factors if scale is None else factors * scale.detach()).abs().max())
    check(isinstance(layer, SHORTENING), f"{type(layer).__name__} has no known constant: there is no bound")
    return 1.0


def windows_per_pixel(layer: nn.MaxPool2d) -> int:
    """The most windows that one pixel lies in.

    >>> windows_per_pixel(nn.MaxPool2d(2)), windows_per_pixel(nn.MaxPool2d(3, stride=2))
    (1, 4)
    """
    sizes = [value if isinstance(value, tuple) else (value, value) for value in (layer.kernel_size, layer.stride)]
    return math.prod(-(-kernel // stride) for kernel, stride in zip(*sizes, strict=True))
