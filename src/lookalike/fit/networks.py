"""Networks at sizes: the cells of the grid that a recipe with [networks] chooses from."""

from dataclasses import replace
from typing import NamedTuple

from lookalike import models
from lookalike.recipe import Recipe, build
from lookalike.recipe.settings import Networks


class NetworkAtSize(NamedTuple):
    """A backbone at a size of its input, in pixels."""

    backbone: str
    size: int

    @property
    def name(self) -> str:
        return f"{self.backbone} at {self.size} pixels"


def cell_of(recipe: Recipe) -> NetworkAtSize:
    """The one that a recipe has now."""
    return NetworkAtSize(
        recipe.model.architecture.backbone, build.views(recipe, models.Preprocessing()).preprocessing.crop
    )


def cells(recipe: Recipe) -> list[NetworkAtSize]:
    """All that a recipe chooses from: the first network from small images to large ones, then the next."""
    own, table = cell_of(recipe), recipe.networks or Networks()
    backbones, sizes = table.backbones or (own.backbone,), table.sizes or (own.size,)
    return [NetworkAtSize(backbone, size) for backbone in backbones for size in sorted(sizes)]


def at(recipe: Recipe, cell: NetworkAtSize) -> Recipe:
    """The recipe with this network at this size."""
    own, network, images = cell_of(recipe), recipe.model, recipe.images
    if cell.backbone != own.backbone:
        architecture = replace(network.architecture, backbone=cell.backbone, settings={})
        network = replace(network, architecture=architecture, weights=_weights(cell.backbone))
    if cell.size != own.size:
        images = replace(images, size=cell.size, short_side=short_side(cell.size))
    return replace(recipe, model=network, images=images)


def pooled(recipe: Recipe, pooling: str) -> Recipe:
    """The recipe with this pooling."""
    architecture = replace(recipe.model.architecture, pooling=pooling)
    return replace(recipe, model=replace(recipe.model, architecture=architecture))


def settled(recipe: Recipe, cell: NetworkAtSize, pooling: str | None) -> Recipe:
    """The recipe whose choice is this cell, with a pooling if one was chosen."""
    recipe = at(recipe, cell) if pooling is None else pooled(at(recipe, cell), pooling)
    return replace(recipe, networks=Networks((cell.backbone,), (cell.size,)))


def short_side(size: int) -> int:
    """Before cropping, in the proportion that networks for photographs were trained with."""
    return round(size * 256 / 224)


def _weights(backbone: str) -> str | None:
    """A network of which no weights were published starts from random ones."""
    published = getattr(models.MEMBERS.get(backbone), "published", None)
    return None if published is not None and not published.files else "pretrained"
