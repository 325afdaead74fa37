"""What people search with: a picture, a part of one, several examples."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from lookalike.data.images.decode import Encoded
from lookalike.errors import UserError, check
from lookalike.geometry import Geometry, normalise
from lookalike.image_files import UnreadableError, read
from lookalike.search.items import Vectors

Box = tuple[int, int, int, int]  # x, y, width, height
AWAY = 0.5  # weight of the examples that are not meant (Rocchio 1971)


def pixels_of(query: Any, box: Box | None = None) -> Tensor:
    """A picture as 3 × h × w, uint8; with `box` only that part of it."""
    pixels = _decoded(query)
    if box is None:
        return pixels
    x, y, width, height = box
    inside = (
        width > 0 and height > 0 and x < pixels.shape[2] and y < pixels.shape[1] and x + width > 0 and y + height > 0
    )
    check(inside, f"the box {x},{y},{width},{height} lies outside the picture of {pixels.shape[2]} × {pixels.shape[1]}")
    return pixels[:, max(0, y) : y + height, max(0, x) : x + width].contiguous()


def _decoded(query: Any) -> Tensor:
    if isinstance(query, str | os.PathLike):
        return _from_file(Path(query))
    if isinstance(query, bytes):
        return _from_bytes(query, "the picture")
    if isinstance(query, Tensor) and query.ndim == 3 and query.shape[0] == 3:
        return query if query.dtype == torch.uint8 else (query.clamp(0, 1) * 255).round().to(torch.uint8)
    if hasattr(query, "convert"):  # a PIL image
        from PIL import ImageOps

        query = np.asarray(ImageOps.exif_transpose(query).convert("RGB"))
    array = np.asarray(query)
    if array.ndim == 2:
        array = np.repeat(array[:, :, None], 3, axis=2)
    good = array.ndim == 3 and array.shape[2] == 3 and array.dtype == np.uint8 and array.size > 0
    check(good, f"a picture must be an array height × width × 3 of uint8, not {array.dtype} of shape {array.shape}")
    return torch.from_numpy(np.array(array)).permute(2, 0, 1)


def _from_file(path: Path) -> Tensor:
    check(path.exists(), f"there is no image and no item '{path}': check its name")
    try:
        return _from_bytes(read(path), str(path))
    except UnreadableError as error:
        raise UserError(f"'{path}' cannot be searched for: {error.detail}") from None


def _from_bytes(content: bytes, name: str) -> Tensor:
    try:
        return Encoded(content).decode()
    except UnreadableError as error:
        raise UserError(f"'{name}' cannot be searched for: {error.detail}") from None


def placed(vectors: Vectors, geometry: Geometry) -> Vectors:
    """Vectors made elsewhere, in the geometry of an index."""
    return np.asarray(normalise(torch.from_numpy(np.array(vectors, np.float32)), geometry).numpy())


def combined(
    positive: Float32[np.ndarray, "examples d"], negative: Float32[np.ndarray, "others d"] | None, geometry: Geometry
) -> Float32[np.ndarray, "1 d"]:
    """One vector for several examples: their mean, moved away from the examples that are not meant."""
    if negative is None and len(positive) == 1:
        return positive
    vector = positive.mean(0, dtype=np.float64)
    if negative is not None:
        away = negative.mean(0, dtype=np.float64)
        vector = vector - AWAY * away if geometry == "sphere" else vector + AWAY * (vector - away)
    length = float(np.linalg.norm(vector))
    if geometry == "sphere" or (geometry == "ball" and length > 1):
        check(length > 0, "the examples cancel each other out: leave out some of them")
        vector = vector / length
    return np.asarray(vector[None], np.float32)


def views_of(pixels: Tensor, flip: bool) -> list[Tensor]:
    """A picture as it is searched for: alone, or with its mirror image."""
    return [pixels, pixels.flip(2)] if flip else [pixels]


def means(views: Sequence[Vectors], geometry: Geometry) -> Vectors:
    """The mean of the same row of several views of pictures, such as of these and of their mirror images."""
    return np.concatenate([combined(np.stack(rows), None, geometry) for rows in zip(*views, strict=True)])
