"""Ioffe and Szegedy, "Batch Normalization", ICML 2015, fig. 5: normalised inception blocks, 3 × 3 pairs for 5 × 5.

The network of most metric-learning papers ([math G.2], [math G.3], [math G.5]). Parameters are named as in the Caffe
model that Xiong ported and Cadene's `pretrainedmodels` distributes: flat, convolutions with a bias before their
normalisation. Input is BGR, 0 … 255, mean subtracted. Departs from that file: running statistics move by 0.1 per step;
its 0.9 was meant as the share that stays.
"""

from functools import partial
from pathlib import Path
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, max_pool2d, relu

from lookalike.models.backbones.normalised import normalised
from lookalike.models.backbones.stages import After, Images, Stages, through
from lookalike.models.backbones.weights import Published, load
from lookalike.models.preprocess import Preprocessing

# Channels in, then out of: 1x1, 3x3_reduce, 3x3, double_3x3_reduce, double_3x3_1 and _2, pool_proj.
# A block without 1x1 halves the map.
PLAN = {
    "3a": (192, 64, 64, 64, 64, 96, 32),
    "3b": (256, 64, 64, 96, 64, 96, 64),
    "3c": (320, 0, 128, 160, 64, 96, 0),
    "4a": (576, 224, 64, 96, 96, 128, 128),
    "4b": (576, 192, 96, 128, 96, 128, 128),
    "4c": (576, 160, 128, 160, 128, 160, 128),
    "4d": (608, 96, 128, 192, 160, 192, 128),
    "4e": (608, 0, 128, 192, 192, 256, 0),
    "5a": (1056, 352, 192, 320, 160, 224, 128),
    "5b": (1024, 352, 192, 320, 192, 224, 128),
}
WEIGHTS = Published(
    files=("bn_inception-52deb4733.pth", "bn_inception-239d2248.pth", "bn_inception-9f5701afb96c8044.pth"),
    classifier=("last_linear.", "fc."),
    origin="Cadene's pretrainedmodels",
    licence="not stated (code: BSD-3-Clause)",
)


class BNInception(nn.Module):
    """10.3 million parameters, 1024 channels: inception blocks with batch normalisation.

    >>> BNInception().eval()(torch.zeros(1, 3, 64, 64)).shape
    torch.Size([1, 1024, 2, 2])
    """

    width = 1024
    published = WEIGHTS
    stages: ClassVar[Stages] = {
        "conv1": ("conv1_",),
        "conv2": ("conv2_",),
        **{f"inception_{name}": (f"inception_{name}_",) for name in PLAN},
    }
    preprocessing = Preprocessing(crop=227, mean=(104.0, 117.0, 128.0), std=(1.0, 1.0, 1.0), order="BGR")

    def __init__(self, weights: str | Path | None = None) -> None:
        super().__init__()
        self._add("conv1_7x7_s2", 3, 64, 7, stride=2)
        self._add("conv2_3x3_reduce", 64, 64, 1)
        self._add("conv2_3x3", 64, 192, 3)
        for name, channels in PLAN.items():
            self._add_block(f"inception_{name}_", *channels)
        load(self, weights, self.published)

    def _add(self, name: str, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        convolution = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2)
        nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
        self.add_module(name, convolution)
        self.add_module(f"{name}_bn", nn.BatchNorm2d(outputs))

    def _add_block(
        self, name: str, inputs: int, one: int, reduce: int, three: int, narrow: int, double: int, pool: int
    ) -> None:
        stride = 1 if one else 2
        if one:
            self._add(f"{name}1x1", inputs, one, 1)
            self._add(f"{name}pool_proj", inputs, pool, 1)
        self._add(f"{name}3x3_reduce", inputs, reduce, 1)
        self._add(f"{name}3x3", reduce, three, 3, stride)
        self._add(f"{name}double_3x3_reduce", inputs, narrow, 1)
        self._add(f"{name}double_3x3_1", narrow, double, 3)
        self._add(f"{name}double_3x3_2", double, double, 3, stride)

    def forward(self, images: Images, after: After | None = None) -> Float[Tensor, "n 1024 rows columns"]:
        return through(((name, partial(self._run, name)) for name in self.stages), images, after)

    def _run(self, stage: str, x: Tensor) -> Tensor:
        if stage == "conv1":
            return _halved(self._chain(x, "conv1_7x7_s2"))
        if stage == "conv2":
            return _halved(self._chain(x, "conv2_3x3_reduce", "conv2_3x3"))
        three = self._chain(x, f"{stage}_3x3_reduce", f"{stage}_3x3")
        double = self._chain(x, *(f"{stage}_double_3x3_{part}" for part in ("reduce", "1", "2")))
        if stage in ("inception_3c", "inception_4e"):
            return torch.cat([three, double, _halved(x, like_convolution=True)], 1)
        pooled = max_pool2d(x, 3, 1, 1) if stage == "inception_5b" else avg_pool2d(x, 3, 1, 1)
        return torch.cat([self._chain(x, f"{stage}_1x1"), three, double, self._chain(pooled, f"{stage}_pool_proj")], 1)

    def _chain(self, x: Tensor, *names: str) -> Tensor:
        for name in names:
            x = relu(normalised(self.get_submodule(name), self.get_submodule(f"{name}_bn"), x), inplace=True)
        return x


def _halved(x: Tensor, like_convolution: bool = False) -> Tensor:
    """Caffe rounds sizes up; on an odd side a convolution beside it yields one more, and so does a padded pooling."""
    padding = (x.shape[2] % 2, x.shape[3] % 2) if like_convolution else 0
    return max_pool2d(x, 3, 2, padding, ceil_mode=True)
