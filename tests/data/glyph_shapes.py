"""Which characters look alike, by measuring how the fonts draw them: how glyph_classes.txt was made.

Characters are drawn in every font, stretched to one box (images vary in size, aspect and slant, so c and C, | and /
are one shape too), blurred a little, and correlated. Two that correlate above `SAME` in at least `FONTS_AGREE` fonts,
at any slant, are one shape; the first of them stays. Small scripts come first, so that they keep enough members. The
list is `first_of_each_shape(candidates())`.
"""

import math
import unicodedata

import numpy as np
import torch
from PIL import Image
from torch.nn.functional import normalize, pad

from lookalike.data.formats.glyph_fonts import FONTS, centred, coverage, draws, ink

FONTS_NEEDED = 12  # a character that fewer fonts draw has too few images
FONTS_AGREE = 4
SAME = 0.92
ASPECT = 2.0  # images vary in aspect and slant, so shapes that differ only in that are one
SLANTS = (-0.4, 0.0, 0.4)
BOX = 24  # pixels of the measuring box, and the blur within it
BLUR = 1.0
LETTERS = ("Lu", "Ll", "Lt", "Lo")
SCRIPTS = ("Digits", "Georgian", "Armenian", "Cyrillic", "Arrows", "Shapes", "Mathematics", "Greek", "Latin")


def script(character):
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


def _stretched(ink, slant):
    """The character slanted and stretched to the whole box, and the logarithm of its aspect before."""
    if slant:
        reach = round(abs(slant) * ink.height)
        source = (1, slant, -reach if slant > 0 else 0, 0, 1, 0)  # where a pixel comes from
        ink = ink.transform((ink.width + reach, ink.height), Image.Transform.AFFINE, source, Image.Resampling.BILINEAR)
        ink = ink.crop(ink.getbbox())
    return np.asarray(ink.resize((BOX, BOX), Image.Resampling.BILINEAR)), math.log(ink.width / ink.height)


def _features(drawings):
    """Slightly blurred drawings as unit vectors whose product is the correlation."""
    distance = torch.arange(-3.0, 4.0)
    weights = torch.exp(-(distance**2) / (2 * BLUR**2))
    weights = weights / weights.sum()
    shapes = pad(torch.from_numpy(drawings).float(), (4, 4, 4, 4))[:, None]
    shapes = torch.conv2d(torch.conv2d(shapes, weights.view(1, 1, -1, 1)), weights.view(1, 1, 1, -1))
    flat = shapes.flatten(1)
    return normalize(flat - flat.mean(1, keepdim=True), dim=1)


def _alike(characters, font):
    """Which characters this font draws alike: as they are, or slanted and, within `ASPECT`, stretched."""
    inks = list(ink(characters, font))
    plain = _features(np.stack([centred(one, BOX) for one in inks]))
    result = torch.mm(plain, plain.T) >= SAME
    views = {slant: [_stretched(one, slant) for one in inks] for slant in SLANTS}
    features = {slant: _features(np.stack([drawing for drawing, _ in views[slant]])) for slant in SLANTS}
    aspects = {slant: torch.tensor([aspect for _, aspect in views[slant]]) for slant in SLANTS}
    for slant in SLANTS:
        close = (aspects[0.0][:, None] - aspects[slant]).abs() < math.log(ASPECT)
        alike = close & (torch.mm(features[0.0], features[slant].T) >= SAME)
        result |= alike | alike.T
    return result


def same_shape(characters):
    """Which characters are one shape: alike in at least `FONTS_AGREE` fonts."""
    agree = torch.zeros(len(characters), len(characters), dtype=torch.int64)
    for font in FONTS:
        known = torch.tensor([row for row, character in enumerate(characters) if draws(font, character)])
        agree[known[:, None], known] += _alike([characters[row] for row in known.tolist()], font)
    return agree >= FONTS_AGREE


def candidates():
    """All characters of our scripts that enough fonts draw, smallest script first."""
    everything = sorted({code for font in FONTS for code in coverage(font)})
    enough = [code for code in everything if sum(code in coverage(font) for font in FONTS) >= FONTS_NEEDED]
    characters = [chr(code) for code in enough if script(chr(code))]
    return sorted(characters, key=lambda character: (SCRIPTS.index(str(script(character))), character))


def first_of_each_shape(characters):
    """The characters that look like none of those before them."""
    same = same_shape(characters)
    distinct = []
    for row in range(len(characters)):
        if not bool(same[row, distinct].any()):
            distinct.append(row)
    return [characters[row] for row in distinct]
