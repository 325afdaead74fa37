"""A convolution with the batch normalisation behind it (Ioffe, Szegedy, ICML 2015, sec. 3.1).

With fixed statistics the two are one convolution: γ (Wx + b − μ) / σ + β = (γ/σ) Wx + (b − μ) γ/σ + β. W, γ and β learn
through it as through the two; values and gradients differ by rounding only. It spares a pass over every map on the way
forth and one on the way back, and the memory of one of two maps (benchmarks/backbones.py).
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


def normalised(
    convolution: nn.Module, norm: nn.Module, x: Float[Tensor, "n inputs h w"]
) -> Float[Tensor, "n outputs rows columns"]:
    """norm(convolution(x)), in one pass where the statistics of `norm` are fixed."""
    if not isinstance(convolution, nn.Conv2d) or not isinstance(norm, _BatchNorm) or norm.training:
        return norm(convolution(x))  # type: ignore[no-any-return]
    mean, variance = norm.running_mean, norm.running_var
    assert mean is not None  # no backbone of ours lets them go
    assert variance is not None
    scale = norm.weight * torch.rsqrt(variance + norm.eps)
    shift = -mean if convolution.bias is None else convolution.bias - mean
    weight, bias = scale.view(-1, 1, 1, 1) * convolution.weight, shift * scale + norm.bias
    return convolution._conv_forward(x, weight, bias)  # type: ignore[no-any-return]
