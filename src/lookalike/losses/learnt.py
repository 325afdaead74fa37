"""What losses learn besides the network: weights per class as they begin, and the rates at which it is trained."""

from typing import Any

import torch
from torch import nn

from lookalike.errors import check_at_least


def class_weights(classes: int, dim: int, each: int = 1) -> nn.Parameter:
    """`each` vectors per class, drawn uniformly between −1/√dim and 1/√dim, as a linear layer begins.

    >>> class_weights(100, 8).shape
    torch.Size([100, 8])
    """
    check_at_least(1, classes=classes, dim=dim)
    return nn.Parameter(torch.empty(classes * each, dim).uniform_(-(dim**-0.5), dim**-0.5))


def at_learning_rate(loss: Any, base_lr: float) -> list[dict[str, Any]]:  # noqa: ARG001
    """`parameter_groups` of a loss that learns at its own `learning_rate`, whatever that of the network."""
    return [{"params": list(loss.parameters()), "lr": loss.learning_rate, "weight_decay": 0.0}]


def at_rate_factor(loss: Any, base_lr: float) -> list[dict[str, Any]]:
    """`parameter_groups` of a loss that learns `rate_factor` times as fast as the network, whose rate is `base_lr`."""
    return [{"params": list(loss.parameters()), "lr": base_lr * loss.rate_factor, "weight_decay": 0.0}]
