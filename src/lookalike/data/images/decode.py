"""Bytes to pixels: from every format 3 × h × w, uint8, RGB, upright.

libjpeg-turbo decodes JPEG, reduced while decoding where the crop needs no more; Pillow decodes everything else, and
JPEGs that are unusual (CMYK) or damaged in a way that it can repair. Transparent pixels lie over white.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor
from torch.nn.functional import interpolate

from lookalike.image_files import JPEG, check_markers, check_size, decoding_failure, open_image

if TYPE_CHECKING:
    from PIL.Image import Image

MARGIN = 2.0  # a reduced image keeps twice the pixels that are needed: the antialiased resize hides the difference
ORIENTATION = 0x0112
STRIP = 1 << 16  # pixels that are converted at a time
TURNED = (5, 6, 7, 8)  # EXIF orientations that swap height and width


class Encoded:
    """An image file in memory: its size from the header, its pixels on demand.

    >>> from io import BytesIO
    >>> from PIL import Image
    >>> file = BytesIO()
    >>> Image.new("L", (4, 2), 7).save(file, "PNG")
    >>> Encoded(file.getvalue()).decode().shape
    torch.Size([3, 2, 4])
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.image: Image | None = None
        markers = check_markers(data)
        header = _jpeg_header(data)
        self.turbo = header is not None
        if header is None:
            self.image = open_image(data)
            header = self.image.height, self.image.width
        self.height, self.width = header
        check_size(self.height, self.width, markers.scans)
        self.orientation = _orientation(self.image or (open_image(data) if markers.exif else None))
        if self.orientation in TURNED:
            self.height, self.width = self.width, self.height

    def decode(self, scale: float = 1.0) -> UInt8[Tensor, "3 h w"]:
        """RGB, possibly reduced by a power of two, but to no less than `scale` times the size."""
        if self.turbo:
            pixels = _turbo(self.data, max(self.height, self.width), _reduction(scale))
            if pixels is not None:
                return _upright(torch.from_numpy(pixels).permute(2, 0, 1), self.orientation)
        image = self.image or open_image(self.data)
        return _upright(torch.from_numpy(_rgb(image)).permute(2, 0, 1), self.orientation)


def resize(image: UInt8[Tensor, "3 h w"], height: int, width: int) -> UInt8[Tensor, "3 {height} {width}"]:
    """Bilinear with antialiasing, as Pillow does it, on uint8."""
    if image.shape[1:] == (height, width):
        return image
    pixels = image[None].contiguous(memory_format=torch.channels_last)  # three times faster than on a strided view
    return interpolate(pixels, (height, width), mode="bilinear", antialias=True)[0]


def _jpeg_header(data: bytes) -> tuple[int, int] | None:
    """Height and width of a JPEG that libjpeg-turbo converts to RGB by itself; None for others."""
    import simplejpeg

    if not data.startswith(JPEG):
        return None
    try:
        height, width, space, _ = simplejpeg.decode_jpeg_header(data, strict=False)
    except (ValueError, KeyError):  # KeyError: colour spaces and samplings it has no name for
        return None
    return (height, width) if space in ("YCbCr", "RGB", "Gray") else None


def _reduction(scale: float) -> int:
    """8, 4, 2 or 1: the powers of two are the reductions that libjpeg-turbo does faster than a full decode."""
    return next(factor for factor in (8, 4, 2, 1) if factor == 1 or MARGIN * scale * factor <= 1)


def _turbo(data: bytes, longest: int, factor: int) -> np.ndarray | None:
    import simplejpeg

    # the decoder applies the strongest reduction that leaves the longer side at least this many pixels
    enough = -(-longest // factor) if factor > 1 else 0
    height, width, _, _ = simplejpeg.decode_jpeg_header(data, strict=False)
    least: dict[str, Any] = {"min_height": enough} if height >= width else {"min_width": enough}
    try:
        pixels: np.ndarray = simplejpeg.decode_jpeg(data, "RGB", **least)
    except ValueError:
        return None  # Pillow repairs what can be repaired and names the fault otherwise
    return pixels


def _orientation(image: "Image | None") -> int:
    """The EXIF orientation; 1 (upright) where there is none or it is unreadable."""
    if image is None:
        return 1
    try:
        value = image.getexif().get(ORIENTATION, 1)  # for a PNG this decodes the pixels: EXIF may follow them
    except Exception:  # broken EXIF is no reason to lose the photo; decode notices broken pixels
        return 1
    return value if isinstance(value, int) else 1


def _rgb(image: "Image") -> np.ndarray:
    """The pixels of any Pillow image as h × w × 3, converted in strips: a copy of all in floats may be gigabytes."""
    try:
        image.load()
        convert = _conversion(image)
        pixels = np.empty((image.height, image.width, 3), np.uint8)
        for top, strip in _strips(image):
            pixels[top : top + strip.height] = convert(strip)
        return pixels
    except Exception as error:  # decoders raise whatever damaged bytes lead them to
        raise decoding_failure(error) from None


def _strips(image: "Image") -> Iterator[tuple[int, "Image"]]:
    rows = max(1, STRIP // max(1, image.width))
    for top in range(0, image.height, rows):
        yield top, image.crop((0, top, image.width, min(top + rows, image.height)))


def _conversion(image: "Image") -> Callable[["Image"], np.ndarray]:
    """From a strip of this image to what fits into h × w × 3."""
    if image.mode.startswith("I;"):
        table = (np.arange(65536) * (255 / 65535)).round().astype(np.uint8)
        return lambda strip: table[np.asarray(strip)][:, :, None]
    if image.mode in ("I", "F"):
        scale = 255 / _full_scale(image)
        return lambda strip: (_finite(strip).clip(0) * scale).round().astype(np.uint8)[:, :, None]
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        return lambda strip: np.asarray(_over_white(strip.convert("RGBA")).convert("RGB"))
    return lambda strip: np.asarray(strip.convert("RGB"))


def _full_scale(image: "Image") -> float:
    """White in an image of more than eight bits, guessed from its largest value."""
    top = max((float(_finite(strip).max(initial=0)) for _, strip in _strips(image)), default=0.0)
    ranges = (1.0, 255.0, 65535.0) if image.mode == "F" else (255.0, 65535.0)
    return next((limit for limit in ranges if top <= limit), top)


def _finite(strip: "Image") -> np.ndarray:
    return np.nan_to_num(np.asarray(strip, np.float64))


def _over_white(image: "Image") -> "Image":
    from PIL import Image

    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image)


def _upright(image: Tensor, orientation: int) -> Tensor:
    """Undo the EXIF orientation: mirrored for 2, 4, 5, 7, turned by quarters for the rest."""
    if orientation in (5, 7):
        image = image.transpose(1, 2)
        return image if orientation == 5 else image.flip(1, 2)
    turns = {3: 2, 4: 2, 6: 3, 8: 1}.get(orientation, 0)
    image = image.rot90(turns, (1, 2)) if turns else image
    return image.flip(2) if orientation in (2, 4) else image
