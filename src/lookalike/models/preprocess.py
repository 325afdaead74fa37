"""How pixels become a network's input: plain data, saved with the model, and the evaluation view it describes.

Pixels are 0 … 255 everywhere; mean and standard deviation are in the same unit, one convention for networks that take 0
… 1, −1 … 1 or mean-subtracted BGR. Training crops are made elsewhere, as uint8 RGB, and pass through the same `scale`.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.nn.functional import interpolate

from lookalike.errors import UserError, check, unknown
from lookalike.image_files import LONGEST
from lookalike.values import dataclass_of

Order = Literal["RGB", "BGR", "L"]
Interpolation = Literal["bilinear", "bicubic"]
LARGEST = 8192  # pixels of a side: more would fill the memory
LUMA = (0.299, 0.587, 0.114)  # ITU-R 601, as Pillow


@dataclass(frozen=True)
class Preprocessing:
    """The evaluation view: shorter side to `resize` (`warp`: both), centre `crop`, then (x − mean) / std in `order`.

    `mean` and `std` are in 0 … 255, one per channel; `interpolation` is "bilinear" or "bicubic".

    >>> Preprocessing(crop=128, resize=144).as_dict()["crop"]
    128
    """

    crop: int = 224
    resize: int | None = 256  # None: the image keeps its size
    warp: bool = False
    mean: tuple[float, ...] = (123.675, 116.28, 103.53)  # of ImageNet, as in torchvision, in 0 … 255
    std: tuple[float, ...] = (58.395, 57.12, 57.375)
    order: Order = "RGB"
    interpolation: Interpolation = "bilinear"

    def __post_init__(self) -> None:
        check(0 < self.crop <= LARGEST, f"the crop must have 1 to {LARGEST} pixels, not {self.crop}")
        fits = self.resize is None or self.resize >= self.crop
        check(fits, f"images resized to {self.resize} are smaller than the crop of {self.crop}: set a larger resize")
        check(not self.warp or self.resize is not None, "warp needs a size: set resize")
        for kind, value, possible in (
            ("colour order", self.order, get_args(Order)),
            ("interpolation", self.interpolation, get_args(Interpolation)),
        ):
            if value not in possible:
                raise unknown(kind, value, possible)
        for name, values in (("mean", self.mean), ("std", self.std)):
            check(
                len(values) == self.channels,
                f"{name} has {len(values)} values for the {self.channels} channels of {self.order}",
            )
            check(all(abs(value) <= 1e6 for value in values), f"{name} must be numbers of at most 1e6, not {values}")
        check(min(self.std) >= 1e-6, f"std must be positive, not {min(self.std)}")
        fits = self.resize is None or self.resize <= LARGEST
        check(fits, f"images are resized to at most {LARGEST} pixels, not {self.resize}")

    @property
    def channels(self) -> int:
        return 1 if self.order == "L" else 3

    def sized(self, crop: int, resize: int | None = None) -> "Preprocessing":
        """The same colours at another size; without `resize` in the same proportion as before.

        >>> Preprocessing(crop=224, resize=256).sized(112).resize
        128
        """
        if resize is None and self.resize is not None:
            resize = round(self.resize * crop / self.crop)
        return replace(self, crop=crop, resize=resize)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON and TOML."""
        return asdict(self)

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> "Preprocessing":
        """From the `values` of JSON or TOML; what is unknown or of another kind is refused."""
        return dataclass_of(Preprocessing, values, "preprocessing")


GREY = Preprocessing(mean=(127.5,), std=(127.5,), order="L")


def as_pixels(image: Any) -> Shaped[Tensor, "... c h w"]:
    """An image (or a batch of one size) as channels × rows × columns, 0 … 255: uint8, or float32 from floats in 0 … 1.

    PIL images and numpy arrays (rows × columns × channels, or rows × columns) as they come, tensors channels first.

    >>> as_pixels(np.zeros((5, 4, 3), dtype=np.uint8)).shape
    torch.Size([3, 5, 4])
    """
    if hasattr(image, "getbands"):  # a PIL image
        image = _from_pil(image)
    if isinstance(image, np.ndarray):
        image = np.require(
            image[..., None] if image.ndim == 2 else image, requirements=["C", "W"]
        )  # a copy only if necessary
        image = torch.from_numpy(image)
        image = image.movedim(-1, -3)
    if not isinstance(image, Tensor):
        raise UserError(f"an image must be a path, a PIL image, an array or a tensor, not {type(image).__name__}")
    image = image[None] if image.dim() == 2 else image
    shape = tuple(image.shape)
    check(
        image.dim() in (3, 4) and shape[-3] in (1, 3),
        f"an image needs 1 or 3 channels (tensors: channels first), not {shape}",
    )
    check(min(shape[-2:]) > 0, f"an image has no pixels: its shape is {shape}")
    return _to_range(image)


def _from_pil(image: Any) -> np.ndarray:
    """Grey as grey, everything else as RGB; transparent pixels lie over white."""
    eight_bits = image.mode[0] not in "IF"
    check(eight_bits, f"a PIL image of mode {image.mode} has no 8-bit pixels: convert it to RGB or L first")
    if image.has_transparency_data:
        from PIL import Image

        image = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)
    return np.array(image.convert("L" if image.mode in ("1", "L") else "RGB"))


def _to_range(image: Tensor) -> Tensor:
    if image.dtype == torch.uint8:
        return image
    check(image.is_floating_point(), f"pixels must be uint8 (0 … 255) or floats in 0 … 1, not {image.dtype}")
    low, high = (float(value) for value in image.aminmax()) if image.numel() else (0.0, 0.0)
    inside = low >= -1e-3 and high <= 1 + 1e-3  # interpolation overshoots a little; NaN fails
    check(inside, f"float pixels must lie in 0 … 1, not {low:g} … {high:g}: use uint8 for 0 … 255")
    return image.float() * 255


def evaluation_view(pixels: Shaped[Tensor, "*n c h w"], how: Preprocessing) -> Shaped[Tensor, "*n c crop crop"]:
    """Resized and centre-cropped pixels. The middle is rounded as in torchvision.

    >>> evaluation_view(torch.zeros(3, 300, 200, dtype=torch.uint8), Preprocessing(crop=224, resize=256)).shape
    torch.Size([3, 224, 224])
    """
    height, width = pixels.shape[-2:]
    size = _resized(height, width, how)
    if size != (height, width):
        batch = (pixels if pixels.dim() == 4 else pixels[None]).contiguous(memory_format=torch.channels_last)  # faster
        batch = interpolate(batch, size, mode=how.interpolation, antialias=True, align_corners=False)
        pixels = batch if pixels.dim() == 4 else batch[0]
    top, left = _corner(size, how)
    return pixels[..., top : top + how.crop, left : left + how.crop]


def seen_part(height: int, width: int, how: Preprocessing) -> tuple[float, float, float, float]:
    """The part of an image that the evaluation view shows: x, y, width and height, in shares of the image.

    >>> seen_part(400, 200, Preprocessing(crop=224, resize=224))
    (0.0, 0.25, 1.0, 0.5)
    """
    size = _resized(height, width, how)
    top, left = _corner(size, how)
    return left / size[1], top / size[0], how.crop / size[1], how.crop / size[0]


def _corner(size: tuple[int, int], how: Preprocessing) -> tuple[int, int]:
    """Where the centre crop of an image of this size begins."""
    height, width = size
    check(min(size) >= how.crop, f"an image of {height} × {width} is smaller than the crop of {how.crop}: set resize")
    return round((height - how.crop) / 2), round((width - how.crop) / 2)


def _resized(height: int, width: int, how: Preprocessing) -> tuple[int, int]:
    if how.resize is None:
        return height, width
    if how.warp:
        return how.resize, how.resize
    shorter, longest = min(height, width), LONGEST * how.resize
    return min(longest, how.resize * height // shorter), min(longest, how.resize * width // shorter)


def coloured(pixels: Shaped[Tensor, "*n c h w"], how: Preprocessing) -> Shaped[Tensor, "*n k h w"]:
    """Grey or RGB pixels in the network's colour order."""
    if how.order == "L":
        if pixels.shape[-3] == 1:
            return pixels
        weights = torch.tensor(LUMA, device=pixels.device)[:, None, None]
        return (pixels * weights).sum(-3, keepdim=True)
    if pixels.shape[-3] == 1:
        return pixels.expand(*pixels.shape[:-3], 3, *pixels.shape[-2:])
    return pixels.flip(-3) if how.order == "BGR" else pixels


def rgb_or_grey(pixels: Shaped[Tensor, "*n c h w"], how: Preprocessing) -> Shaped[Tensor, "*n k h w"]:
    """Pixels with as many channels as the network takes, colours in the order R, G, B: the input of an ONNX file."""
    return coloured(pixels, how if how.order == "L" else replace(how, order="RGB"))


def scale(pixels: Shaped[Tensor, "n c h w"], how: Preprocessing) -> Float[Tensor, "n k h w"]:
    """Pixels as the network's input: the last step of training crops and evaluation views alike.

    `pixels`: 0 … 255, grey or RGB, n × channels × rows × columns. `how`: the colours of the network.

    >>> white = torch.full((1, 1, 1, 1), 255, dtype=torch.uint8)
    >>> scale(white, Preprocessing(mean=(127, 127, 127), std=(128, 128, 128)))
    tensor([[[[1.]],
    <BLANKLINE>
             [[1.]],
    <BLANKLINE>
             [[1.]]]])
    """
    mean, std = (torch.tensor(values, device=pixels.device)[:, None, None] for values in (how.mean, how.std))
    return (coloured(pixels, how).float() - mean) / std


def prepare(images: Any, how: Preprocessing) -> Float[Tensor, "n k crop crop"]:
    """`images` (a sequence of any kind and size, or one 4-dimensional array or tensor) as the network's input, cut and
    coloured as `how` says."""
    if isinstance(images, Tensor | np.ndarray) and images.ndim == 4:
        return scale(evaluation_view(as_pixels(images), how), how)
    return torch.cat([scale(evaluation_view(as_pixels(image), how)[None], how) for image in images])
