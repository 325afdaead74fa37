"""Weights from a formula, so that a network of another library can have the same ones anywhere."""

import torch


def wave(name: str, shape: torch.Size) -> torch.Tensor:
    """Values in float64 that depend on the name and shape of a parameter only, of a size that keeps signals alive."""
    count = max(shape.numel(), 1)
    places = torch.arange(count, dtype=torch.float64) * 12.9898 + len(name)
    values = 2 * (torch.sin(places) * 43758.5453).frac().abs().reshape(shape) - 1  # as good as random in −1 … 1
    if len(shape) > 1:
        return values * (6 / shape[1:].numel()) ** 0.5  # a convolution
    if name.endswith("running_var"):
        return 1 + 0.5 * values
    if name.endswith("weight"):
        return 1 + 0.3 * values
    return 0.2 * values


def waved(network):
    """The network in float64, all its weights and statistics replaced."""
    network = network.double().eval()
    state = network.state_dict()
    network.load_state_dict(
        {key: wave(key, value.shape) if value.is_floating_point() else value for key, value in state.items()}
    )
    return network


def pixels(size: int = 64) -> torch.Tensor:
    return torch.sin(torch.arange(3 * size * size, dtype=torch.float64) * 0.013).reshape(1, 3, size, size)
