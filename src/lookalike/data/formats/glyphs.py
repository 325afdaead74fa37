"""The built-in data set: characters in many fonts, drawn on first use from the fonts of matplotlib.

A class is a character, an image is that character in one font, size, slant and distortion; categories are scripts. No
two classes have the same shape (`glyph_fonts`). Half of the classes of every script train, the other half test.
"""

from hashlib import sha256
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import grid_sample, interpolate, pad

from lookalike.cache import loaded
from lookalike.data.dataset import Dataset
from lookalike.data.formats.glyph_fonts import FONTS, draw, draws, glyph_classes
from lookalike.data.images.source import Arrays
from lookalike.data.splits import assign_classes
from lookalike.data.vocabulary import numbered
from lookalike.errors import check
from lookalike.files import read_arrays
from lookalike.progress import Progress

VERSION = 2  # raise it when the drawing changes, so that older caches are not used
FINE = 64  # pixels of the drawing before it is distorted and reduced
CHUNK = 1024
DRAWN = "glyphs.npz"


def glyphs(difficulty: float = 0.6, seed: int = 0, size: int = 32, progress: Progress | None = None) -> Dataset:
    """Characters in 16 fonts, drawn on first use and kept in the cache; no download. Categories are scripts.

    `difficulty` 0 is plain print, 1 heavy distortion; `seed` decides which half of the classes trains, `size` is the
    side of an image in pixels.
    """
    check(0 <= difficulty <= 1, f"difficulty must lie between 0 and 1, not {difficulty}")
    check(8 <= size <= FINE, f"size must be 8 to {FINE} pixels, not {size}")
    characters = glyph_classes()
    names = "".join(character for character, _ in characters)
    key = sha256(f"{VERSION} {difficulty:.6f} {seed} {size} {names}".encode()).hexdigest()[:24]
    images, classes = loaded("glyphs", key, lambda folder: _write(folder, difficulty, seed, size, progress), _load)
    rows = torch.from_numpy(classes)
    # classes keep the order of the file: sorting names would mix the scripts
    scripts, script_names = numbered([name for _, name in characters])
    halves = assign_classes(scripts, {"train": 0.5, "test": 0.5}, torch.Generator().manual_seed(seed))
    return Dataset(
        "glyphs",
        Arrays(images, np.arange(len(images))),
        rows,
        tuple(character for character, _ in characters),
        scripts[rows],
        script_names,
        halves[rows],
    )


def _write(folder: Path, difficulty: float, seed: int, size: int, progress: Progress | None) -> None:
    """Draw everything into `folder`: one image per class and font that has it, sorted by class."""
    characters = [character for character, _ in glyph_classes()]
    plain, classes, fonts = [], [], []
    for place, font in enumerate(FONTS):
        rows = [row for row, character in enumerate(characters) if draws(font, character)]
        plain.append(draw([characters[row] for row in rows], font, FINE))
        classes += rows
        fonts += [place] * len(rows)
        if progress is not None:
            progress(place + 1, 2 * len(FONTS))
    order = np.lexsort((fonts, classes))
    drawings = torch.from_numpy(np.concatenate(plain)[order])
    generator = torch.Generator().manual_seed(seed)
    images = []
    for chunk in torch.split(drawings, CHUNK):
        images.append(distort(chunk.float()[:, None] / 255, difficulty, size, generator))
        if progress is not None:
            share = min(1.0, len(images) * CHUNK / len(drawings))
            progress(len(FONTS) + int(share * len(FONTS)), 2 * len(FONTS))
    # with checksums, unlike .npy
    np.savez(folder / DRAWN, images=torch.cat(images).numpy(), classes=np.asarray(classes, np.int64)[order])


def _load(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    arrays = read_arrays(folder / DRAWN)
    return arrays["images"], arrays["classes"]


def distort(plain: Float[Tensor, "n 1 h h"], difficulty: float, size: int, generator: torch.Generator) -> Tensor:
    """Drawings (white on black, 0 … 1) turned, slanted, bent, thinned or thickened, on uneven grey paper."""
    grid = _grid(plain, difficulty, generator)
    ink = grid_sample(plain, grid, align_corners=False)
    ink = _weight(ink, difficulty, generator)
    if FINE % size == 0:
        ink = ink.view(-1, 1, size, FINE // size, size, FINE // size).mean((3, 5))
    else:
        ink = interpolate(ink, (size, size), mode="bilinear", antialias=True)
    return (_paper(ink, difficulty, generator) * 255).round().to(torch.uint8).squeeze(1)


def _uniform(count: int, reach: float, generator: torch.Generator) -> Tensor:
    return (2 * torch.rand(count, generator=generator) - 1) * reach


def _grid(plain: Tensor, difficulty: float, generator: torch.Generator) -> Tensor:
    """Where every pixel comes from: size, aspect, rotation, slant, place, and a smooth random bend."""
    count = len(plain)
    angle = _uniform(count, 0.45 * difficulty, generator)
    slant = _uniform(count, 0.55 * difficulty, generator)
    wide = 1.35 * (_uniform(count, 0.35 * difficulty, generator)).exp()
    high = 1.35 * (_uniform(count, 0.35 * difficulty, generator)).exp()
    turn = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], 1).view(-1, 2, 2)
    shear = torch.stack([wide, slant, torch.zeros(count), high], 1).view(-1, 2, 2)
    shift = torch.stack([_uniform(count, 0.2 * difficulty, generator) for _ in range(2)], 1)
    side = plain.shape[-1]
    across = (torch.arange(side) + 0.5) * (2 / side) - 1
    points = torch.stack([across.expand(side, side).flatten(), across[:, None].expand(side, side).flatten()])
    grid = (shear @ turn @ points + shift[:, :, None]).view(count, 2, side, side)
    knots = torch.randn(count, 2, 5, 5, generator=generator) * 0.11 * difficulty
    return (grid + _smooth(knots, side)).permute(0, 2, 3, 1)


def _smooth(knots: Tensor, side: int) -> Tensor:
    """Bicubic surfaces through a few knots, as two products: many times faster than interpolating every surface."""
    count = knots.shape[-1]
    basis = interpolate(torch.eye(count)[None, None], (side, count), mode="bicubic", align_corners=True)[0, 0]
    return basis @ knots @ basis.T


def _weight(ink: Tensor, difficulty: float, generator: torch.Generator) -> Tensor:
    """Thicker or paler strokes: blur, then a threshold that differs per image."""
    wide = pad(ink, (2, 2))  # sums of shifted images: many times faster than pooling
    wide = sum((wide[..., at : at + FINE] for at in range(1, 5)), wide[..., :FINE])
    high = pad(wide, (0, 0, 2, 2))
    blurred = sum((high[..., at : at + FINE, :] for at in range(1, 5)), high[..., :FINE, :]) / 25
    edge = 0.5 + _uniform(len(ink), 0.3 * difficulty, generator).view(-1, 1, 1, 1)
    stroke = ((blurred - edge) * 6 + 0.5).clamp(0, 1)
    # a hairline may fade but not vanish: W without its thin strokes would be a wrong label
    return torch.lerp(ink, torch.maximum(stroke, 0.8 * ink), min(1.0, 2 * difficulty))


def _paper(ink: Tensor, difficulty: float, generator: torch.Generator) -> Tensor:
    """Dark ink on light paper or the reverse, with a gradient, weaker contrast and grain."""
    count = len(ink)
    contrast = 1 - 0.6 * difficulty * torch.rand(count, 1, 1, 1, generator=generator)
    tone = torch.randn(count, 1, 3, 3, generator=generator) * 0.15 * difficulty
    picture = 0.5 + (0.5 - ink) * contrast + _smooth(tone, ink.shape[-1])
    reverse = torch.rand(count, 1, 1, 1, generator=generator) < 0.5 * difficulty
    picture = torch.where(reverse, 1 - picture, picture)
    grain = torch.randn(picture.shape, generator=generator) * 0.12 * difficulty
    return (picture + grain).clamp(0, 1)
