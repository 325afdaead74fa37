"""Raw pixels as features: what can be compared without any network, and the least that a trained one must beat."""

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d

from lookalike.errors import check
from lookalike.models.backbones.stages import After, Stages
from lookalike.models.backbones.weights import Published, load
from lookalike.models.preprocess import GREY, Preprocessing

SIDE = 32


class Pixels(nn.Module):
    """A thumbnail of `side` × `side` pixels as one vector; nothing to learn, no weights.

    `channels`: 1 for grey images, 3 for coloured ones.

    >>> import torch
    >>> Pixels()(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 3072, 1, 1])
    """

    published = Published()
    stages: ClassVar[Stages] = {}

    def __init__(self, channels: int = 3, side: int = SIDE, weights: str | Path | None = None) -> None:
        super().__init__()
        check(channels in (1, 3), f"images have 1 or 3 channels, not {channels}")
        check(side > 0, f"side must be positive, not {side}")
        self.side, self.width = side, channels * side * side
        colours = GREY if channels == 1 else Preprocessing(mean=(127.5,) * 3, std=(127.5,) * 3)
        self.preprocessing = replace(colours, crop=side, resize=side)
        load(self, weights, self.published)

    def forward(self, images: Float[Tensor, "n c h w"], after: After | None = None) -> Float[Tensor, "n width 1 1"]:
        del after  # there are no stages
        if images.shape[2:] != (self.side, self.side):
            images = adaptive_avg_pool2d(images, self.side)
        return images.flatten(1)[:, :, None, None]
