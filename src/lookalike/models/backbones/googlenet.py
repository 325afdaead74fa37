"""Szegedy et al., "Going Deeper with Convolutions", CVPR 2015, table 1: inception blocks, without batch normalisation.

The network of FastAP [math G.4]. Parameters are named as in torchvision. Its published weights have batch normalisation
after every convolution and 3 × 3 filters in place of 5 × 5: loading folds the former into the convolutions and pads the
latter with zeros, both exactly; a file without either loads as it is. Departs from the paper unless `paper=True`: no
local response normalisation, and a last pooling of 2 × 2, as those weights were trained.
"""

from functools import partial
from pathlib import Path
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad, relu

from lookalike.models.backbones.stages import After, Images, Stages, through
from lookalike.models.backbones.weights import Published, State, load
from lookalike.models.preprocess import Preprocessing

# Channels in, then out of: 1x1, 3x3 reduce, 3x3, 5x5 reduce, 5x5, pool projection.
PLAN = {
    "3a": (192, 64, 96, 128, 16, 32, 32),
    "3b": (256, 128, 128, 192, 32, 96, 64),
    "4a": (480, 192, 96, 208, 16, 48, 64),
    "4b": (512, 160, 112, 224, 24, 64, 64),
    "4c": (512, 128, 128, 256, 24, 64, 64),
    "4d": (512, 112, 144, 288, 32, 64, 64),
    "4e": (528, 256, 160, 320, 32, 128, 128),
    "5a": (832, 256, 160, 320, 32, 128, 128),
    "5b": (832, 384, 192, 384, 48, 128, 128),
}
EPSILON = 1e-3  # of torchvision's batch normalisation
FOLDED = ("conv.weight", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var")


def without_normalisation(state: State) -> State:
    """A state dict with batch normalisation folded into the convolutions, and 5 × 5 filters throughout branch 3.

    γ (Wx − μ) / √(σ² + ε) + β = (γ / √(σ² + ε)) W x + (β − γ μ / √(σ² + ε)).
    """
    folded = {key: value for key, value in state.items() if ".bn." not in key}
    for key in state:
        name = key.removesuffix("bn.running_var")
        if name != key and all(f"{name}{part}" in state for part in FOLDED):
            gain = state[f"{name}bn.weight"] / (state[key] + EPSILON).sqrt()
            folded[f"{name}conv.weight"] = state[f"{name}conv.weight"] * gain[:, None, None, None]
            folded[f"{name}conv.bias"] = state[f"{name}bn.bias"] - state[f"{name}bn.running_mean"] * gain
    for key, value in folded.items():
        if key.endswith("branch3.1.conv.weight") and value.shape[-1] == 3:
            folded[key] = pad(value, (1, 1, 1, 1))
    return folded


WEIGHTS = Published(
    files=("googlenet-1378be20.pth",),
    classifier=("fc.", "aux1.", "aux2."),
    convert=without_normalisation,
    origin="torchvision",
    licence="not stated (code: BSD-3-Clause)",
)


class GoogLeNet(nn.Module):
    """6 million parameters, 1024 channels, no batch normalisation: nothing here depends on the rest of the batch.

    `paper`: with the local response normalisation of the paper, which the published weights were trained without.

    >>> GoogLeNet()(torch.zeros(1, 3, 64, 64)).shape
    torch.Size([1, 1024, 2, 2])
    """

    width = 1024
    published = WEIGHTS
    stages: ClassVar[Stages] = {
        "conv1": ("conv1.",),
        "conv2": ("conv2.", "conv3."),
        **{f"inception{name}": (f"inception{name}.",) for name in PLAN},
    }
    preprocessing = Preprocessing(mean=(127.5,) * 3, std=(127.5,) * 3)

    def __init__(self, paper: bool = False, weights: str | Path | None = None) -> None:
        super().__init__()
        self.conv1 = Convolution(3, 64, 7, stride=2)
        self.conv2 = Convolution(64, 64, 1)
        self.conv3 = Convolution(64, 192, 3)
        for name, channels in PLAN.items():
            self.add_module(f"inception{name}", Inception(*channels))
        self.response = nn.LocalResponseNorm(5, alpha=1e-4, beta=0.75) if paper else nn.Identity()
        self.halved = nn.MaxPool2d(3, 2, ceil_mode=True)
        self.last_halved = self.halved if paper else nn.MaxPool2d(2, 2, ceil_mode=True)
        load(self, weights, self.published)

    def forward(self, images: Images, after: After | None = None) -> Float[Tensor, "n 1024 rows columns"]:
        return through(((name, partial(self._run, name)) for name in self.stages), images, after)

    def _run(self, stage: str, x: Tensor) -> Tensor:
        if stage == "conv1":
            return self.response(self.halved(self.conv1(x)))  # type: ignore[no-any-return]
        if stage == "conv2":
            return self.halved(self.response(self.conv3(self.conv2(x))))  # type: ignore[no-any-return]
        if stage == "inception4a":
            x = self.halved(x)
        if stage == "inception5a":
            x = self.last_halved(x)
        result: Tensor = self.get_submodule(stage)(x)
        return result


class Convolution(nn.Module):
    """A convolution and ReLU, named as in torchvision's weights."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2)
        # without normalisation the initial scale must be right
        nn.init.kaiming_normal_(self.conv.weight, nonlinearity="relu")
        nn.init.zeros_(self.conv.bias)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        return relu(self.conv(x), inplace=True)


class Inception(nn.Module):
    """Four views of the same map, side by side: 1 × 1, 3 × 3, 5 × 5 and a pooling."""

    def __init__(self, inputs: int, one: int, reduce_3: int, three: int, reduce_5: int, five: int, pool: int) -> None:
        super().__init__()
        self.branch1 = Convolution(inputs, one, 1)
        self.branch2 = nn.Sequential(Convolution(inputs, reduce_3, 1), Convolution(reduce_3, three, 3))
        self.branch3 = nn.Sequential(Convolution(inputs, reduce_5, 1), Convolution(reduce_5, five, 5))
        self.branch4 = nn.Sequential(nn.MaxPool2d(3, 1, 1), Convolution(inputs, pool, 1))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.branch1(x), self.branch2(x), self.branch3(x), self.branch4(x)], 1)
