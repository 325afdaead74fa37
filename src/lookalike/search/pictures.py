"""Pictures of items as small JPEGs, upright, without anything else that was in the file."""

import base64
import io
from pathlib import Path
from typing import Any

from lookalike.data.images.decode import Encoded
from lookalike.image_files import UnreadableError, read
from lookalike.search.items import Item
from lookalike.search.stores import Store

SIDE = 256  # the longer side of a thumbnail


def thumbnail(store: Store, item: Item, side: int = SIDE) -> bytes | None:
    """The picture of an item as JPEG, or None where it cannot be read any more."""
    try:
        content = store.picture(item.id) if item.path is None else read(Path(item.path))
        return None if content is None else as_jpeg(Encoded(content).decode().permute(1, 2, 0).numpy(), side)
    except UnreadableError:
        return None


def as_jpeg(array: Any, side: int = SIDE) -> bytes:
    """An array height × width × 3 as a small JPEG."""
    from PIL import Image

    image = Image.fromarray(array)
    image.thumbnail((side, side))
    file = io.BytesIO()
    image.save(file, "JPEG", quality=85)
    return file.getvalue()


def as_url(jpeg: bytes) -> str:
    """A picture inside a page."""
    return f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"
