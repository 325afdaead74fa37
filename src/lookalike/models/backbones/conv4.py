"""Vinyals et al., "Matching Networks for One Shot Learning", NeurIPS 2016, sec. 4.1: four blocks for small images.

A block is a 3 × 3 convolution with 64 filters, batch normalisation, ReLU and 2 × 2 maximum pooling, so that an image of
28 pixels ends as one vector. See also: the "Conv-4" of Snell et al., "Prototypical Networks", NeurIPS 2017.
"""

from dataclasses import replace
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lookalike.errors import check
from lookalike.models.backbones.stages import After, Stages, Steps, through
from lookalike.models.backbones.weights import Published, load
from lookalike.models.preprocess import GREY, Preprocessing

SMALLEST = 16  # four halvings leave one position


class Conv4(nn.Module):
    """Four convolutions with `width` filters, for images of 16 to some 100 pixels; there are no published weights.

    `channels`: 1 for grey images, 3 for coloured ones.

    >>> import torch
    >>> Conv4(channels=1)(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 64, 1, 1])
    """

    published = Published()

    def __init__(self, channels: int = 3, width: int = 64, weights: str | Path | None = None) -> None:
        super().__init__()
        check(channels in (1, 3), f"images have 1 or 3 channels, not {channels}")
        check(width > 0, f"width must be positive, not {width}")
        self.width = width
        self.stages: Stages = {f"block{number}": (f"block{number}.",) for number in range(1, 5)}
        three = Preprocessing(mean=(127.5,) * 3, std=(127.5,) * 3)
        self.preprocessing = replace(GREY if channels == 1 else three, crop=28, resize=28)
        for number in range(1, 5):
            self.add_module(f"block{number}", _block(channels if number == 1 else width, width))
        load(self, weights, self.published)
        # for grey images the layout is ambiguous; this one takes two thirds of the time
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(
        self, images: Float[Tensor, "n c h w"], after: After | None = None
    ) -> Float[Tensor, "n width rows columns"]:
        check(
            min(images.shape[2:]) >= SMALLEST,
            f"conv4 needs images of at least {SMALLEST} pixels, not {tuple(images.shape[2:])}",
        )
        return through(self.steps, images, after)

    @property
    def steps(self) -> Steps:
        return [(name, self.get_submodule(name)) for name in self.stages]


def _block(inputs: int, outputs: int) -> nn.Sequential:
    convolution = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)  # the normalisation has a bias
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True), nn.MaxPool2d(2))
