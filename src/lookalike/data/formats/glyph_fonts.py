"""The classes of the built-in data set, and how the fonts of matplotlib draw them.

Α, А and A are three characters and one shape, and a data set whose labels are characters must not contain two of them.
glyph_classes.txt holds one character of each shape. It was measured once (tests/data/glyph_shapes.py measures again and
compares): the last bits of a rendering differ between versions of FreeType, and the classes of a data set must not.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image

FAMILIES = ("DejaVuSans", "DejaVuSansMono", "DejaVuSerif", "STIXGeneral")
STYLES = {
    "DejaVuSans": ("", "-Bold", "-Oblique", "-BoldOblique"),
    "DejaVuSansMono": ("", "-Bold", "-Oblique", "-BoldOblique"),
    "DejaVuSerif": ("", "-Bold", "-Italic", "-BoldItalic"),
    "STIXGeneral": ("", "Bol", "Italic", "BolIta"),
}
FONTS = tuple(f"{family}{style}.ttf" for family in FAMILIES for style in STYLES[family])
CLASSES = Path(__file__).with_name("glyph_classes.txt")


def glyph_classes() -> list[tuple[str, str]]:
    """Character and script of every class, from the file."""
    lines = [line.split("\t") for line in CLASSES.read_text(encoding="utf-8").splitlines()]
    return [(character, name) for name, characters in lines for character in characters]


@cache
def coverage(font: str) -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(str(font_path(font))).get_charmap())


def font_path(font: str) -> Path:
    """The file of a font that comes with matplotlib."""
    from matplotlib import get_data_path

    return Path(get_data_path()) / "fonts" / "ttf" / font


def draws(font: str, character: str) -> bool:
    """Whether the font has this character."""
    return ord(character) in coverage(font)


def ink(characters: list[str], font: str) -> Iterator["Image"]:
    """Every character (all must be in the font) in white on black, cropped to its ink."""
    from PIL import Image, ImageDraw, ImageFont

    pen = ImageFont.truetype(str(font_path(font)), 64, layout_engine=ImageFont.Layout.BASIC)
    sheet = Image.new("L", (192, 192))
    brush = ImageDraw.Draw(sheet)
    for character in characters:
        sheet.paste(0, (0, 0, *sheet.size))
        brush.text((64, 48), character, 255, font=pen)
        yield sheet.crop(sheet.getbbox() or (0, 0, 1, 1))


def draw(characters: list[str], font: str, box: int) -> np.ndarray:
    """The characters in white on black, each scaled to fill box × box and centred."""
    return np.stack([centred(each, box) for each in ink(characters, font)])


def centred(ink: "Image", box: int) -> np.ndarray:
    from PIL import Image

    side = max(ink.size)
    square = Image.new("L", (side, side))
    square.paste(ink, ((side - ink.width) // 2, (side - ink.height) // 2))
    return np.asarray(square.resize((box, box), Image.Resampling.BOX if side > box else Image.Resampling.BILINEAR))
