"""What a backbone wants to see: each was trained on its own scale and order of colours (SPEC G)."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from lookalike.errors import unknown


@dataclass(frozen=True)
class Normalisation:
    """(x − mean) / std per channel on 0 … 255; `bgr` reverses the channels first, mean and std are in that order.

    >>> white = torch.full((1, 3, 1, 1), 255, dtype=torch.uint8)
    >>> named("efficientnet_lite")(white).flatten()
    tensor([1., 1., 1.])
    """

    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    bgr: bool = False

    def __call__(self, images: UInt8[Tensor, "n 3 h w"]) -> Float[Tensor, "n 3 h w"]:
        pixels = (images.flip(1) if self.bgr else images).float()
        mean = torch.tensor(self.mean, device=images.device).view(1, 3, 1, 1)
        std = torch.tensor(self.std, device=images.device).view(1, 3, 1, 1)
        return (pixels - mean) / std


NORMALISATIONS = {
    "imagenet": Normalisation((0.485 * 255, 0.456 * 255, 0.406 * 255), (0.229 * 255, 0.224 * 255, 0.225 * 255)),
    "bn_inception": Normalisation((104.0, 117.0, 128.0), (1.0, 1.0, 1.0), bgr=True),
    "efficientnet_lite": Normalisation((127.0, 127.0, 127.0), (128.0, 128.0, 128.0)),
    "unit": Normalisation((0.0, 0.0, 0.0), (255.0, 255.0, 255.0)),
}


def named(name: str) -> Normalisation:
    """The normalisation of a backbone: imagenet, bn_inception, efficientnet_lite, or unit (0 … 1)."""
    if name not in NORMALISATIONS:
        raise unknown("normalisation", name, NORMALISATIONS)
    return NORMALISATIONS[name]
