"""Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", ICLR 2022: h = W x + s B A x, where A and B learn.

Every linear layer that may learn gets its own A and B of a low rank; W stays. B starts at zero, so that nothing changes
before the first step. Afterwards W + s B A takes the place of W: a model folder holds plain weights, and whoever loads
it needs nothing of this. peft would do the same to networks of transformers; these few lines do it to any backbone,
keep the names of all weights, so that checkpoints, fingerprints and stages need no second case, and install nothing.

Departs from the paper: all linear layers, those of the MLP too (the paper adapts attention alone), and s = 1, since the
learning rate scales as well.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import linear

from lookalike.errors import check

PARTS = ("down", "up")  # A and B


class LowRankLinear(nn.Module):
    """A linear layer whose weights stay, and a product of two thin matrices that learns beside it."""

    def __init__(self, layer: nn.Linear, rank: int, generator: torch.Generator) -> None:
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias
        bound = 1 / math.sqrt(layer.in_features)
        start = torch.empty(rank, layer.in_features).uniform_(-bound, bound, generator=generator)
        self.down = nn.Parameter(start.to(layer.weight))
        self.up = nn.Parameter(layer.weight.new_zeros(layer.out_features, rank))

    def forward(self, inputs: Float[Tensor, "*n width"]) -> Float[Tensor, "*n out"]:
        return linear(inputs, self.weight, self.bias) + linear(linear(inputs, self.down), self.up)

    def merged(self) -> Float[Tensor, "out width"]:
        """The weights of one layer that computes the same."""
        return (self.weight + self.up @ self.down).detach()


def low_rank_layers(network: nn.Module) -> dict[str, LowRankLinear]:
    """The adapted layers of a network, by name."""
    return {name: layer for name, layer in network.named_modules() if isinstance(layer, LowRankLinear)}


def parts(layer: nn.Module) -> tuple[str, ...]:
    """The names of the parameters that learn in an adapted layer; none in any other."""
    return PARTS if isinstance(layer, LowRankLinear) else ()


def adapt(backbone: nn.Module, learns: Callable[[str], bool], rank: int, seed: int = 0) -> None:
    """Put a `LowRankLinear` of this `rank` in the place of every linear layer of which `learns(name)` holds."""
    check(rank > 0, f"the rank of model.lora must be at least 1, not {rank}")
    layers = {name: layer for name, layer in backbone.named_modules() if type(layer) is nn.Linear and learns(name)}
    check(bool(layers), "no linear layer of this backbone learns, which model.lora needs: leave it out")
    generator = torch.Generator().manual_seed(seed)
    for name, layer in layers.items():
        backbone.set_submodule(name, LowRankLinear(layer, rank, generator))


def merge(backbone: nn.Module) -> None:
    """Plain linear layers again, with what was learnt in their weights."""
    for name, layer in low_rank_layers(backbone).items():
        out, width = layer.weight.shape
        plain = nn.Linear(width, out, bias=layer.bias is not None, device="meta")
        layer.weight.data.copy_(layer.merged())
        plain.weight, plain.bias = layer.weight, layer.bias
        backbone.set_submodule(name, plain.train(layer.training))


def merged_state(network: nn.Module) -> dict[str, Tensor]:
    """The state dict that a network has once its adapted layers are merged."""
    state = dict(network.state_dict())
    for name, layer in low_rank_layers(network).items():
        state[f"{name}.weight"] = layer.merged()
        for part in PARTS:
            del state[f"{name}.{part}"]
    return state
