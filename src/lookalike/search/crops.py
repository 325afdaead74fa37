"""Is one photo a part of another? [math l-crops]

A crop, however it was scaled afterwards, keeps the shape of its pixels: what is unknown is how large a part of the
other photo it is, and which. Small grey pictures of both are compared in windows of some sizes at all places, by the
correlation of their grey levels, which brightness and contrast leave alone; first roughly, which few pairs survive.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float64, UInt8
from torch import Tensor

from lookalike.data.images.decode import resize

LEAST = 0.93  # correlation of a crop; the best of other photos are below (python -m benchmarks.duplicates)
FLAT = 6.0  # grey levels of deviation: less than that is noise
LUMA = torch.tensor([0.299, 0.587, 0.114])


@dataclass(frozen=True)
class Look:
    """How closely photos are compared.

    side, finer: pixels of a square as large as the photo that is looked through, and as the part before it shrinks.
    step: a window has this share of the sides of the one before, down to half of what fits.
    least: the correlation that counts.
    """

    side: int
    finer: int
    step: float
    least: float


LOOKS = (Look(24, 32, 0.95, 0.8), Look(48, 96, 0.975, LEAST))


@dataclass(frozen=True)
class GreyPhoto:
    """A photo for each look: to look through, and to look for."""

    wholes: tuple[UInt8[np.ndarray, "_ _"], ...]
    parts: tuple[UInt8[np.ndarray, "_ _"], ...]

    @staticmethod
    def of(pixels: UInt8[Tensor, "3 h w"]) -> "GreyPhoto":
        wholes, parts = (tuple(_grey(pixels, getattr(look, side)) for look in LOOKS) for side in ("side", "finer"))
        return GreyPhoto(wholes, parts)

    def within(self, other: "GreyPhoto") -> float:
        """The correlation by which this photo is a part of the `other`; 0 where it is none."""
        found = 0.0
        for look, whole, part in zip(LOOKS, other.wholes, self.parts, strict=True):
            found = correlation(whole.astype(np.float64), part, look.step)
            if found < look.least:
                return 0.0
        return found


def correlation(whole: Float64[np.ndarray, "h w"], part: UInt8[np.ndarray, "rows columns"], step: float) -> float:
    """The best correlation of a part with a window of a photo; −1: no window has its shape or any contrast."""
    sums = [np.pad(power.cumsum(0).cumsum(1), ((1, 0), (1, 0))) for power in (whole, whole**2)]
    waves = np.fft.rfft2(whole)
    best = -1.0
    for window in _windows(part, whole.shape, step):
        centred = window - window.mean()
        length = float(np.sqrt((centred**2).sum()))
        if length >= FLAT * np.sqrt(window.size):
            products = np.fft.irfft2(waves * np.conj(np.fft.rfft2(centred, whole.shape)), whole.shape)
            lengths = _lengths(sums, window.shape)
            best = max(best, float((products[: lengths.shape[0], : lengths.shape[1]] / lengths).max()) / length)
    return best


def _lengths(sums: list[np.ndarray], window: tuple[int, ...]) -> Float64[np.ndarray, "down across"]:
    """The length of what is in each window without its mean."""
    height, width = window
    total, squares = (
        one[height:, width:] - one[:-height, width:] - one[height:, :-width] + one[:-height, :-width] for one in sums
    )
    number = height * width
    return np.asarray(np.sqrt(np.maximum(squares - total**2 / number, FLAT**2 * number)))


def _windows(part: np.ndarray, shape: tuple[int, ...], step: float) -> Iterator[np.ndarray]:
    """The part in the sizes that it may have in a picture of this shape, at least half of what fits."""
    from PIL import Image

    share, seen = min(shape[0] / part.shape[0], shape[1] / part.shape[1]), set()
    picture, least = Image.fromarray(part.astype(np.float32)), share / 2
    while share >= least:
        size = round(part.shape[1] * share), round(part.shape[0] * share)
        if min(size) >= 8 and size not in seen:
            seen.add(size)
            yield np.asarray(picture.resize(size, Image.Resampling.BILINEAR), np.float64)
        share *= step


def _grey(pixels: Tensor, side: int) -> UInt8[np.ndarray, "h w"]:
    height, width = pixels.shape[1:]
    share = side / math.sqrt(height * width)
    small = resize(pixels, max(1, round(height * share)), max(1, round(width * share)))
    return np.asarray((small.permute(1, 2, 0).float() @ LUMA).round().to(torch.uint8).numpy())
