"""Huang, Liu, van der Maaten, Weinberger, "Densely Connected Convolutional Networks", CVPR 2017, table 1: 201 layers.

The second network of *Sampling Wisely* ([math G.5], table 2). Every layer reads what all layers before it in its block
have written. Parameters are named as in torchvision; its published file has them in an older spelling, which loading
translates.
"""

import re
from pathlib import Path
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import relu

from lookalike.models.backbones.normalised import normalised
from lookalike.models.backbones.stages import After, Images, Stages, through
from lookalike.models.backbones.weights import Published, State, load
from lookalike.models.preprocess import Preprocessing

LAYERS = (6, 12, 48, 32)  # of the four blocks
GROWTH = 32  # channels that a layer adds
OLDER = re.compile(r"(denselayer\d+\.(?:norm|conv))\.([12])\.")


def renamed(state: State) -> State:
    """The published file has `features.denseblock1.denselayer1.norm.1.weight` where the name is now without `features.`
    and with `norm1`.

    >>> list(renamed({"features.denseblock1.denselayer1.norm.1.weight": torch.ones(1)}))
    ['denseblock1.denselayer1.norm1.weight']
    """
    return {OLDER.sub(r"\1\2.", key.removeprefix("features.")): value for key, value in state.items()}


class DenseNet201(nn.Module):
    """201 layers, 1920 channels, 18 million parameters: narrow layers, each of which reads all before it.

    >>> DenseNet201()(torch.zeros(1, 3, 64, 64)).shape
    torch.Size([1, 1920, 2, 2])
    """

    width = 1920
    published = Published(
        files=("densenet201-c1103571.pth",),
        classifier=("classifier.",),
        convert=renamed,
        origin="torchvision",
        licence="not stated (code: BSD-3-Clause)",
    )
    stages: ClassVar[Stages] = {
        "stem": ("conv0.", "norm0."),
        **{f"block{number}": (f"denseblock{number}.", f"transition{number}.") for number in range(1, 4)},
        "block4": ("denseblock4.", "norm5."),
    }
    preprocessing = Preprocessing()

    def __init__(self, weights: str | Path | None = None) -> None:
        super().__init__()
        channels = 2 * GROWTH
        self.conv0 = nn.Conv2d(3, channels, 7, stride=2, padding=3, bias=False)
        self.norm0 = nn.BatchNorm2d(channels)
        self.pool0 = nn.MaxPool2d(3, stride=2, padding=1)
        for number, depth in enumerate(LAYERS, start=1):
            layers = {f"denselayer{place + 1}": Layer(channels + place * GROWTH) for place in range(depth)}
            self.add_module(f"denseblock{number}", nn.ModuleDict(layers))
            channels += depth * GROWTH
            if number < len(LAYERS):
                self.add_module(f"transition{number}", Transition(channels))
                channels //= 2
        self.norm5 = nn.BatchNorm2d(channels)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight)
        load(self, weights, self.published)

    def forward(self, images: Images, after: After | None = None) -> Float[Tensor, "n 1920 rows columns"]:
        blocks = [(f"block{number}", lambda x, number=number: self._block(number, x)) for number in range(1, 5)]
        return through([("stem", self._stem), *blocks], images, after)

    def _stem(self, x: Tensor) -> Tensor:
        return self.pool0(relu(normalised(self.conv0, self.norm0, x), inplace=True))  # type: ignore[no-any-return]

    def _block(self, number: int, x: Tensor) -> Tensor:
        layers = self.get_submodule(f"denseblock{number}")
        assert isinstance(layers, nn.ModuleDict)
        for layer in layers.values():
            x = torch.cat([x, layer(x)], 1)
        if number == len(LAYERS):
            return relu(self.norm5(x))
        return self.get_submodule(f"transition{number}")(x)  # type: ignore[no-any-return]


class Layer(nn.Module):
    """Narrow to four times the growth, then 3 × 3."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, 4 * GROWTH, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(4 * GROWTH)
        self.conv2 = nn.Conv2d(4 * GROWTH, GROWTH, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        inner = relu(normalised(self.conv1, self.norm2, relu(self.norm1(x))))
        return self.conv2(inner)  # type: ignore[no-any-return]


class Transition(nn.Module):
    """Half the channels, half the map."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(inputs)
        self.conv = nn.Conv2d(inputs, inputs // 2, 1, bias=False)
        self.pool = nn.AvgPool2d(2)

    def forward(self, x: Tensor) -> Tensor:
        return self.pool(self.conv(relu(self.norm(x))))  # type: ignore[no-any-return]
