"""He, Zhang, Ren, Sun, "Deep Residual Learning for Image Recognition", CVPR 2016, table 1: 18 and 50 layers.

Departs from the paper: the halving of a bottleneck sits in its 3 × 3 convolution ("ResNet v1.5"), as in the published
weights of torchvision, whose parameter names are used. The network of [math G.1] and [math G.4].
"""

from pathlib import Path

from jaxtyping import Float
from torch import Tensor, nn

from lookalike.models.backbones.normalised import normalised
from lookalike.models.backbones.stages import After, Images, Stages, Steps, through
from lookalike.models.backbones.weights import Published, load
from lookalike.models.preprocess import Preprocessing

STAGES: Stages = {"stem": ("conv1.", "bn1."), **{f"layer{number}": (f"layer{number}.",) for number in range(1, 5)}}
WEIGHTS_18 = Published(
    files=("resnet18-f37072fd.pth", "resnet18-5c106cde.pth"),
    classifier=("fc.",),
    origin="torchvision",
    licence="not stated (code: BSD-3-Clause)",
)
WEIGHTS_50 = Published(
    files=("resnet50-0676ba61.pth", "resnet50-19c8e357.pth", "resnet50-11ad3fa6.pth"),
    classifier=("fc.",),
    origin="torchvision",
    licence="not stated (code: BSD-3-Clause)",
)


class ResNet18(nn.Module):
    """18 layers, 512 channels: two 3 × 3 convolutions per block.

    >>> import torch
    >>> ResNet18()(torch.zeros(1, 3, 64, 64)).shape
    torch.Size([1, 512, 2, 2])
    """

    width = 512
    published = WEIGHTS_18
    stages = STAGES
    preprocessing = Preprocessing()

    def __init__(self, weights: str | Path | None = None) -> None:
        super().__init__()
        _fill(self, Basic, (2, 2, 2, 2))
        load(self, weights, self.published)

    def forward(self, images: Images, after: After | None = None) -> Float[Tensor, "n 512 rows columns"]:
        return through(self.steps, images, after)

    @property
    def steps(self) -> Steps:
        return _steps(self)


class ResNet50(nn.Module):
    """50 layers, 2048 channels: a 3 × 3 convolution between two 1 × 1 ones per block; the network of Roth et al."""

    width = 2048
    published = WEIGHTS_50
    stages = STAGES
    preprocessing = Preprocessing()

    def __init__(self, weights: str | Path | None = None) -> None:
        super().__init__()
        _fill(self, Bottleneck, (3, 4, 6, 3))
        load(self, weights, self.published)

    def forward(self, images: Images, after: After | None = None) -> Float[Tensor, "n 2048 rows columns"]:
        return through(self.steps, images, after)

    @property
    def steps(self) -> Steps:
        return _steps(self)


class Basic(nn.Module):
    """Two 3 × 3 convolutions and a way around them."""

    expansion = 1

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = _shortcut(inputs, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        inner = self.relu(normalised(self.conv1, self.bn1, x))
        result: Tensor = self.relu(normalised(self.conv2, self.bn2, inner) + _around(self.downsample, x))
        return result


class Bottleneck(nn.Module):
    """Narrow, 3 × 3, wide again, and a shortcut around them."""

    expansion = 4

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        outputs = width * self.expansion
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = _shortcut(inputs, outputs, stride)

    def forward(self, x: Tensor) -> Tensor:
        inner = self.relu(normalised(self.conv1, self.bn1, x))
        inner = self.relu(normalised(self.conv2, self.bn2, inner))
        result: Tensor = self.relu(normalised(self.conv3, self.bn3, inner) + _around(self.downsample, x))
        return result


def _shortcut(inputs: int, outputs: int, stride: int) -> nn.Module:
    if stride == 1 and inputs == outputs:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))


def _around(shortcut: nn.Module, x: Tensor) -> Tensor:
    return normalised(shortcut[0], shortcut[1], x) if isinstance(shortcut, nn.Sequential) else x


def _fill(network: nn.Module, block: type[Basic] | type[Bottleneck], depths: tuple[int, ...]) -> None:
    """Give a network its random layers, stage by stage."""
    network.add_module("conv1", nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False))
    network.add_module("bn1", nn.BatchNorm2d(64))
    network.add_module("relu", nn.ReLU(inplace=True))
    network.add_module("maxpool", nn.MaxPool2d(3, stride=2, padding=1))
    inputs = 64
    for number, depth in enumerate(depths):
        width = 64 * 2**number
        blocks = []
        for position in range(depth):
            blocks.append(block(inputs, width, stride=2 if number and not position else 1))
            inputs = width * block.expansion
        network.add_module(f"layer{number + 1}", nn.Sequential(*blocks))
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


def _steps(network: nn.Module) -> Steps:
    def stem(x: Tensor) -> Tensor:
        x = normalised(network.get_submodule("conv1"), network.get_submodule("bn1"), x)
        for name in ("relu", "maxpool"):
            x = network.get_submodule(name)(x)
        return x

    layers = [(name, network.get_submodule(name)) for name in STAGES if name != "stem"]
    return [("stem", stem), *layers]
