"""Photos pasted onto clutter: a thing that fills a quarter of the picture, among parts of other photos.

The clutter is many overlapping parts of other photos, and the photo lies on it as they lie on each other: every piece
fades out over the same width, so that no edge tells which of them is the photo.
"""

from collections.abc import Sequence

import numpy as np
from PIL import Image

SIDE, OBJECT = 448, 224  # pixels of the picture and of the photo in it: a quarter of the area
MARGIN = 28  # pixels that the evaluation view (256, centre 224) cuts off; the photo keeps clear of them
PIECES = 24
FADE = 28  # pixels from nothing to everything

Box = tuple[int, int, int, int]  # x, y, width, height


def pasted(
    photo: Image.Image, others: Sequence[Image.Image], generator: np.random.Generator
) -> tuple[Image.Image, Box]:
    """The photo on parts of `others`, and where it lies."""
    canvas = np.asarray(_square(others[0], SIDE), np.float32)
    for number in range(PIECES):
        side = int(generator.integers(OBJECT // 2, OBJECT + 1))
        x, y = (int(place) for place in generator.integers(-side // 2, SIDE - side // 2, 2))
        canvas = _laid(canvas, _part(others[number % len(others)], side, generator), x, y)
    x, y = (int(place) for place in generator.integers(MARGIN, SIDE - MARGIN - OBJECT + 1, 2))
    canvas = _laid(canvas, np.asarray(_square(photo, OBJECT), np.float32), x, y)
    return Image.fromarray(canvas.round().astype(np.uint8)), (x, y, OBJECT, OBJECT)


def _square(photo: Image.Image, side: int) -> Image.Image:
    """The middle of a photo."""
    shorter = min(photo.size)
    left, top = (photo.width - shorter) // 2, (photo.height - shorter) // 2
    box = (left, top, left + shorter, top + shorter)
    return photo.convert("RGB").resize((side, side), Image.Resampling.BICUBIC, box)


def _part(photo: Image.Image, side: int, generator: np.random.Generator) -> np.ndarray:
    """A square part of a photo, half as wide to as wide as its shorter side."""
    size = int(min(photo.size) * generator.uniform(0.5, 1.0))
    left, top = int(generator.integers(0, photo.width - size + 1)), int(generator.integers(0, photo.height - size + 1))
    part = photo.convert("RGB").resize((side, side), Image.Resampling.BICUBIC, (left, top, left + size, top + size))
    return np.asarray(part, np.float32)


def _laid(canvas: np.ndarray, piece: np.ndarray, x: int, y: int) -> np.ndarray:
    """The canvas with a piece on it, which fades out towards its border."""
    side = len(piece)
    ramp = np.clip((np.minimum(np.arange(side), np.arange(side)[::-1]) + 0.5) / FADE, 0, 1)
    mask = (ramp[:, None] * ramp[None])[..., None].astype(np.float32)
    top, left, bottom, right = max(0, y), max(0, x), min(len(canvas), y + side), min(len(canvas), x + side)
    here, there = np.s_[top:bottom, left:right], np.s_[top - y : bottom - y, left - x : right - x]
    canvas[here] += mask[there] * (piece[there] - canvas[here])
    return canvas
