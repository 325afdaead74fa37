"""[model] and [images]: the network, what it sees of an image, and the device it runs on."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from lookalike.data import Augmentation
from lookalike.data import preset as image_preset
from lookalike.errors import check
from lookalike.models import Embedder, Model, Preprocessing, up_to
from lookalike.models.backbones.weights import WEIGHTS, fill, read
from lookalike.models.cut import check_cut
from lookalike.models.device import checked_device
from lookalike.recipe.settings import Recipe
from lookalike.training.chunked import check_chunks
from lookalike.training.mixup import INPUT, Mixer, mixer


def device(recipe: Recipe) -> torch.device:
    """The device of [train]; auto: a GPU where there is one."""
    name = recipe.train.device
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    return checked_device(name)


def model(recipe: Recipe) -> Model:
    """The untrained model, with the preprocessing that fits the recipe's images; what it cannot do is refused."""
    table = recipe.model
    created = Model.create(table.architecture, table.weights, recipe.seed)
    embedder = embedder_of(created)
    if table.head == "saved":
        _restore_head(embedder, table.weights)
    if table.freeze is not None:
        embedder.freeze(up_to(table.freeze, embedder.backbone.stages))
    if recipe.features is not None and recipe.features.upto is not None:
        check_cut(embedder, recipe.features.upto)
        embedder.freeze(up_to(recipe.features.upto, embedder.backbone.stages))
    mixer_of(recipe, embedder, torch.Generator())
    if recipe.train.chunk is not None and recipe.features is None:
        check_chunks(embedder.train())
        embedder.eval()
    place = device(recipe)
    embedder.to(place)
    if place.type == "cuda":
        embedder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    preprocessing = views(recipe, created.preprocessing).preprocessing
    return replace(created, preprocessing=preprocessing, geometry=recipe.evaluation.geometry)


def _restore_head(embedder: Embedder, weights: str | None) -> None:
    """The head of the saved model whose folder `weights` is."""
    file = Path(weights or "") / WEIGHTS
    check(
        weights is not None and file.is_file(),
        f"model.head=saved takes the head of a saved model: model.weights must be its folder, not {weights}",
    )
    state = {key.removeprefix("head."): value for key, value in read(file).items() if key.startswith("head.")}
    check(bool(state), f"the model in {weights} has no head: leave out model.head=saved")
    fill(embedder.head, state, f"the head in {weights}")


def mixer_of(recipe: Recipe, embedder: Embedder, generator: torch.Generator) -> Mixer | None:
    """What [mixup] mixes: places in the network, or the features where only the head learns."""
    if recipe.mixup is None:
        return None
    if recipe.features is None:
        return mixer(recipe.mixup, embedder, generator)
    only = set(recipe.mixup.places) <= {INPUT}
    check(only, f"with [features] only the head is trained: set mixup.places to {INPUT}, or leave it out")
    return Mixer(recipe.mixup.alpha, (INPUT,), generator)


def embedder_of(model: Model) -> Embedder:
    """The network of a model that a recipe describes."""
    assert isinstance(model.embedder, Embedder)
    return model.embedder


@dataclass(frozen=True)
class Views:
    """What the network sees of an image.

    train: random crops, in training.
    preprocessing: the evaluation crop and the colours, wherever the model is used.
    """

    train: Augmentation
    preprocessing: Preprocessing


def views(recipe: Recipe, natural: Preprocessing) -> Views:
    """The protocol's crops in the colours the backbone was trained on (`natural`)."""
    table, protocol = recipe.images, image_preset(recipe.images.preset)
    size = table.size or protocol.evaluation.size
    base = protocol.evaluation.warp or protocol.evaluation.short_side or protocol.evaluation.size
    side = table.short_side or round(base * size / protocol.evaluation.size)
    protocol = protocol.resized(size, side, table.warp)
    changes: dict[str, Any] = {}
    if table.area is not None:
        check(len(table.area) == 2, f"images.area is a range of two numbers, not {list(table.area)}")
        changes["area"] = table.area
    if table.flip is not None:
        changes["flip"] = table.flip
    preprocessing = replace(natural.sized(size, side), warp=protocol.evaluation.warp is not None)
    return Views(replace(protocol.train, **changes), preprocessing)
