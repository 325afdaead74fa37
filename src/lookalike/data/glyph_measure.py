"""Which characters look alike, by measuring how the fonts draw them.

Α, А and A are three characters and one shape. A dataset whose labels are characters must not contain two of them, or
its labels are false. Characters are drawn in every font, scaled to one box (images vary in size, so c and C are one
shape too), blurred a little, and correlated. Two that correlate above `SAME` in at least `FONTS_AGREE` fonts are one
shape; the first of them stays. Small scripts choose first, so that they keep enough members.

The result is kept in glyph_classes.txt, because the last bits of a rendering differ between versions of FreeType, and
the classes of a dataset must not; the tests measure again and compare.
"""

import unicodedata
from functools import cache
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import pad

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
SAME = 0.94
BOX = 24  # pixels of the measuring box, and the blur within it
BLUR = 1.0
LETTERS = ("Lu", "Ll", "Lt", "Lo")
SCRIPTS = ("Digits", "Georgian", "Armenian", "Cyrillic", "Arrows", "Shapes", "Mathematics", "Greek", "Latin")
CLASSES = Path(__file__).with_name("glyph_classes.txt")


def script(character: str) -> str | None:
    """The category of a character, if it belongs to any of ours.

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


def draw(characters: list[str], font: str, box: int) -> np.ndarray:
    """The characters (which the font must have) in white on black, each scaled to fill box × box and centred."""
    from PIL import Image, ImageDraw, ImageFont

    pen = ImageFont.truetype(str(font_path(font)), 64, layout_engine=ImageFont.Layout.BASIC)
    drawn = np.zeros((len(characters), box, box), np.uint8)
    sheet = Image.new("L", (192, 192))
    brush = ImageDraw.Draw(sheet)
    for row, character in enumerate(characters):
        sheet.paste(0, (0, 0, *sheet.size))
        brush.text((64, 48), character, 255, font=pen)
        ink = sheet.crop(sheet.getbbox() or (0, 0, 1, 1))
        side = max(ink.size)
        square = Image.new("L", (side, side))
        square.paste(ink, ((side - ink.width) // 2, (side - ink.height) // 2))
        drawn[row] = np.asarray(
            square.resize((box, box), Image.Resampling.BOX if side > box else Image.Resampling.BILINEAR)
        )
    return drawn


def similarity(drawn: np.ndarray) -> Float[Tensor, "n n"]:
    """Correlation of slightly blurred drawings, all with all."""
    distance = torch.arange(-3.0, 4.0)
    weights = torch.exp(-(distance**2) / (2 * BLUR**2))
    weights = weights / weights.sum()
    shapes = pad(torch.from_numpy(drawn).float(), (4, 4, 4, 4))[:, None]
    shapes = torch.conv2d(torch.conv2d(shapes, weights.view(1, 1, -1, 1)), weights.view(1, 1, 1, -1))
    flat = shapes.flatten(1)
    flat = flat - flat.mean(1, keepdim=True)
    flat = flat / flat.norm(dim=1, keepdim=True).clamp_min(1e-6)
    return torch.mm(flat, flat.T)


def same_shape(characters: list[str]) -> Bool[Tensor, "n n"]:
    """Which characters are one shape: alike in at least `FONTS_AGREE` fonts."""
    agree = torch.zeros(len(characters), len(characters), dtype=torch.int64)
    for font in FONTS:
        known = torch.tensor([row for row, character in enumerate(characters) if draws(font, character)])
        drawn = draw([characters[row] for row in known.tolist()], font, BOX)
        agree[known[:, None], known] += similarity(drawn) >= SAME
    return agree >= FONTS_AGREE


def candidates() -> list[str]:
    """All characters of our scripts that enough fonts draw, smallest script first."""
    everything = sorted({code for font in FONTS for code in _coverage(font)})
    enough = [code for code in everything if sum(code in _coverage(font) for font in FONTS) >= FONTS_NEEDED]
    found = [chr(code) for code in enough if script(chr(code))]
    return sorted(found, key=lambda character: (SCRIPTS.index(str(script(character))), character))


def measured_classes() -> list[str]:
    """The characters that look like no other one that was taken before them."""
    characters = candidates()
    same = same_shape(characters)
    kept: list[int] = []
    for row in range(len(characters)):
        if not bool(same[row, kept].any()):
            kept.append(row)
    return [characters[row] for row in kept]


def write_classes(path: Path = CLASSES) -> None:
    """Measure and write the file, one script per line."""
    classes = measured_classes()
    lines = [f"{name}\t" + "".join(one for one in classes if script(one) == name) for name in SCRIPTS]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def kept_classes() -> list[tuple[str, str]]:
    """Character and script of every class, from the file."""
    lines = [line.split("\t") for line in CLASSES.read_text(encoding="utf-8").splitlines()]
    return [(character, name) for name, characters in lines for character in characters]
