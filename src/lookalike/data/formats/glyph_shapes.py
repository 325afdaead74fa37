"""Which characters look alike, by measuring how the fonts draw them.

Α, А and A are three characters and one shape. A data set whose labels are characters must not contain two of them, or
its labels are wrong. Characters are drawn in every font, stretched to one box (images vary in size, aspect and slant,
so c and C, | and / are one shape too), blurred a little, and correlated. Two that correlate above `SAME` in at least
`FONTS_AGREE` fonts, at any slant, are one shape; the first of them stays. Small scripts come first, so that they keep
enough members.

The result, `first_of_each_shape(candidates())`, is kept in glyph_classes.txt: the last bits of a rendering differ
between versions of FreeType, and the classes of a data set must not. The tests measure again and compare.
"""

import math
import unicodedata
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import normalize, pad

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
FONTS_NEEDED = 12  # a character that fewer fonts draw has too few images
FONTS_AGREE = 4
SAME = 0.92
ASPECT = 2.0  # images vary in aspect and slant, so shapes that differ only in that are one
SLANTS = (-0.4, 0.0, 0.4)
BOX = 24  # pixels of the measuring box, and the blur within it
BLUR = 1.0
LETTERS = ("Lu", "Ll", "Lt", "Lo")
SCRIPTS = ("Digits", "Georgian", "Armenian", "Cyrillic", "Arrows", "Shapes", "Mathematics", "Greek", "Latin")
CLASSES = Path(__file__).with_name("glyph_classes.txt")


def script(character: str) -> str | None:
    """The category of a character; None if it belongs to none of ours.

    >>> script("ж"), script("∑"), script(" ")
    ('Cyrillic', 'Mathematics', None)
    """
    kind, name = unicodedata.category(character), unicodedata.name(character, "")
    family = name.split(" ")[0].capitalize()
    if kind in LETTERS:
        return family if family in SCRIPTS else None
    if kind in ("So", "Sm") and "ARROW" in name:
        return "Arrows"
    if kind == "So":
        return "Shapes" if "\u25a0" <= character <= "\u26ff" else None
    return {"Nd": "Digits", "Sm": "Mathematics"}.get(kind)


@cache
def _coverage(font: str) -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(str(font_path(font))).get_charmap())


def font_path(font: str) -> Path:
    """The file of a font that comes with matplotlib."""
    from matplotlib import get_data_path

    return Path(get_data_path()) / "fonts" / "ttf" / font


def draws(font: str, character: str) -> bool:
    """Whether the font has this character."""
    return ord(character) in _coverage(font)


def _ink(characters: list[str], font: str) -> Iterator["Image"]:
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
    return np.stack([_centred(ink, box) for ink in _ink(characters, font)])


def _centred(ink: "Image", box: int) -> np.ndarray:
    from PIL import Image

    side = max(ink.size)
    square = Image.new("L", (side, side))
    square.paste(ink, ((side - ink.width) // 2, (side - ink.height) // 2))
    return np.asarray(square.resize((box, box), Image.Resampling.BOX if side > box else Image.Resampling.BILINEAR))


def _stretched(ink: "Image", slant: float) -> tuple[np.ndarray, float]:
    """The character slanted and stretched to the whole box, and the logarithm of its aspect before."""
    from PIL import Image

    if slant:
        reach = round(abs(slant) * ink.height)
        source = (1, slant, -reach if slant > 0 else 0, 0, 1, 0)  # where a pixel comes from
        ink = ink.transform((ink.width + reach, ink.height), Image.Transform.AFFINE, source, Image.Resampling.BILINEAR)
        ink = ink.crop(ink.getbbox())
    return np.asarray(ink.resize((BOX, BOX), Image.Resampling.BILINEAR)), math.log(ink.width / ink.height)


def _features(drawings: np.ndarray) -> Float[Tensor, "n d"]:
    """Slightly blurred drawings as unit vectors whose product is the correlation."""
    distance = torch.arange(-3.0, 4.0)
    weights = torch.exp(-(distance**2) / (2 * BLUR**2))
    weights = weights / weights.sum()
    shapes = pad(torch.from_numpy(drawings).float(), (4, 4, 4, 4))[:, None]
    shapes = torch.conv2d(torch.conv2d(shapes, weights.view(1, 1, -1, 1)), weights.view(1, 1, 1, -1))
    flat = shapes.flatten(1)
    return normalize(flat - flat.mean(1, keepdim=True), dim=1)


def _alike(characters: list[str], font: str) -> Bool[Tensor, "n n"]:
    """Which characters this font draws alike: as they are, or slanted and, within `ASPECT`, stretched."""
    inks = list(_ink(characters, font))
    plain = _features(np.stack([_centred(ink, BOX) for ink in inks]))
    result = torch.mm(plain, plain.T) >= SAME
    views = {slant: [_stretched(ink, slant) for ink in inks] for slant in SLANTS}
    features = {slant: _features(np.stack([drawing for drawing, _ in views[slant]])) for slant in SLANTS}
    aspects = {slant: torch.tensor([aspect for _, aspect in views[slant]]) for slant in SLANTS}
    for slant in SLANTS:
        close = (aspects[0.0][:, None] - aspects[slant]).abs() < math.log(ASPECT)
        alike = close & (torch.mm(features[0.0], features[slant].T) >= SAME)
        result |= alike | alike.T
    return result


def same_shape(characters: list[str]) -> Bool[Tensor, "n n"]:
    """Which characters are one shape: alike in at least `FONTS_AGREE` fonts."""
    agree = torch.zeros(len(characters), len(characters), dtype=torch.int64)
    for font in FONTS:
        known = torch.tensor([row for row, character in enumerate(characters) if draws(font, character)])
        agree[known[:, None], known] += _alike([characters[row] for row in known.tolist()], font)
    return agree >= FONTS_AGREE


def candidates() -> list[str]:
    """All characters of our scripts that enough fonts draw, smallest script first."""
    everything = sorted({code for font in FONTS for code in _coverage(font)})
    enough = [code for code in everything if sum(code in _coverage(font) for font in FONTS) >= FONTS_NEEDED]
    characters = [chr(code) for code in enough if script(chr(code))]
    return sorted(characters, key=lambda character: (SCRIPTS.index(str(script(character))), character))


def first_of_each_shape(characters: list[str]) -> list[str]:
    """The characters that look like none of those before them."""
    same = same_shape(characters)
    distinct: list[int] = []
    for row in range(len(characters)):
        if not bool(same[row, distinct].any()):
            distinct.append(row)
    return [characters[row] for row in distinct]


def glyph_classes() -> list[tuple[str, str]]:
    """Character and script of every class, from the file."""
    lines = [line.split("\t") for line in CLASSES.read_text(encoding="utf-8").splitlines()]
    return [(character, name) for name, characters in lines for character in characters]
