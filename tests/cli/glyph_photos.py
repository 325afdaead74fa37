"""Glyphs as photos in folders, one per class: what a user of the command line has."""

from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from lookalike import data


def glyph_photos(root: Path, classes: Sequence[int], each: Sequence[int]) -> Path:
    """Some images of these classes of the built-in glyphs, by their numbers."""
    glyphs = data.load("glyphs")
    for number in classes:
        rows = (glyphs.labels == number).nonzero().flatten()[list(each)]
        folder = root / f"glyph {number}"
        folder.mkdir(parents=True, exist_ok=True)
        for row in rows.tolist():
            pixels = glyphs.images.open(row).decode().permute(1, 2, 0).numpy()
            Image.fromarray(pixels).save(folder / f"{row}.png")
    return root
