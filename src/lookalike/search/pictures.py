"""Pictures of items as small JPEGs, upright, without anything else that was in the file."""

import base64
import io
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from lookalike.data.images.decode import Encoded
from lookalike.errors import UserError
from lookalike.image_files import UnreadableError, read
from lookalike.search.adding.update import digest_of
from lookalike.search.heat import Heat
from lookalike.search.items import Item
from lookalike.search.stores import Store

SIDE = 256  # the longer side of a thumbnail
DARKEST = 0.7  # over places that give nothing, or speak against it


class PictureError(UserError):
    """The picture of an item that cannot be looked at, or is not what the item is ranked by."""


def thumbnail(
    store: Store,
    item: Item,
    side: int = SIDE,
    turn: Callable[[bytes], AbstractContextManager[object]] = lambda _: nullcontext(),
) -> bytes | None:
    """The picture of an item as JPEG, or None where it cannot be read, or is not what was embedded.

    An index may come from anywhere, and its paths name any file of the reader: only one whose content the index knows
    by its digest is shown. It is decoded within its `turn`.
    """
    try:
        content = content_of(store, item)
        if content is None:
            return None
        with turn(content):
            return small(content, side)
    except UnreadableError:
        return None


def content_of(store: Store, item: Item) -> bytes | None:
    """The file of an item's picture as it was embedded."""
    if item.path is None:
        return store.documents.pictures([item.id]).get(item.id)
    return _as_embedded(item, Path(item.path))


def _as_embedded(item: Item, path: Path) -> bytes | None:
    content = read(path) if item.stamp is not None else b""
    return content if item.stamp is not None and digest_of(content) == item.stamp.digest else None


def small(content: bytes, side: int) -> bytes:
    """An image file as a small JPEG; a large JPEG is reduced while it is decoded."""
    encoded = Encoded(content)
    pixels = encoded.decode(min(1.0, side / max(encoded.height, encoded.width)))
    return as_jpeg(pixels.permute(1, 2, 0).numpy(), side)


def as_jpeg(array: Any, side: int = SIDE) -> bytes:
    """An array height × width × 3 as a small JPEG."""
    from PIL import Image

    image = Image.fromarray(array)
    image.thumbnail((side, side))
    file = io.BytesIO()
    image.save(file, "JPEG", quality=85)
    return file.getvalue()


def lit(array: Any, heat: Heat) -> bytes:
    """A picture as a small JPEG, darker where a place gives less to the similarity."""
    from PIL import Image

    image = Image.fromarray(array)
    image.thumbnail((SIDE, SIDE))
    strength = heat.values.clip(0) / max(float(heat.values.max()), 1e-9)
    x, y, width, height = (share * size for share, size in zip(heat.view, image.size * 2, strict=True))
    light = Image.new("L", image.size, round(255 * (1 - DARKEST)))
    shades = Image.fromarray((255 * (1 - DARKEST * (1 - strength))).round().astype("uint8"))
    light.paste(
        shades.resize((max(1, round(width)), max(1, round(height))), Image.Resampling.BICUBIC), (round(x), round(y))
    )
    image = Image.composite(image, Image.new("RGB", image.size), light)
    file = io.BytesIO()
    image.save(file, "JPEG", quality=85)
    return file.getvalue()


def as_url(jpeg: bytes) -> str:
    """A picture inside a page."""
    return f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"
