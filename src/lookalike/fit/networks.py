"""Networks at sizes: the cells of the grid that a recipe with [networks] chooses from.

A square cut from the centre of a long photo loses its ends. Each cell can therefore be had in a second way: all of the
photo, warped to the square, at the same cost.
"""

import math
from dataclasses import replace
from typing import NamedTuple

from lookalike import models
from lookalike.errors import UserError
from lookalike.recipe import Recipe, build
from lookalike.recipe.settings import Networks


class NetworkAtSize(NamedTuple):
    """A backbone at a size of its input, in pixels, to which photos are warped or cropped."""

    backbone: str
    size: int
    warp: bool = False

    @property
    def name(self) -> str:
        return f"{self.backbone} at {self.size} pixels{', whole photos' if self.warp else ''}"


def cell_of(recipe: Recipe) -> NetworkAtSize:
    """The one that a recipe has now."""
    how = build.views(recipe, models.Preprocessing()).preprocessing
    return NetworkAtSize(recipe.model.architecture.backbone, how.crop, how.warp)


def cells(recipe: Recipe) -> list[NetworkAtSize]:
    """The grid: the first network from small images to large ones, then the next, all with the first kind of warp."""
    own, table = cell_of(recipe), recipe.networks or Networks()
    backbones, sizes, warp = table.backbones or (own.backbone,), table.sizes or (own.size,), (*table.warps, own.warp)[0]
    return [NetworkAtSize(backbone, size, warp) for backbone in backbones for size in sorted(sizes)]


def cheapest(recipe: Recipe) -> NetworkAtSize:
    """The smallest images, for the network with the fewest parameters: about the order of their costs."""
    grid = cells(recipe)
    networks = [cell for cell in grid if cell.size == grid[0].size]
    return min(networks, key=lambda cell: _parameters(at(recipe, cell))) if networks[1:] else grid[0]


def _parameters(recipe: Recipe) -> float:
    """The parameters of a recipe's backbone; infinitely many where it does not take that size."""
    try:
        backbone = build.embedder_of(build.model(recipe)).backbone
        return sum(parameter.numel() for _, parameter in backbone.named_parameters())
    except UserError:
        return math.inf


def twins(recipe: Recipe, cell: NetworkAtSize) -> list[NetworkAtSize]:
    """The same network at the same size with the other kinds of warp."""
    others = () if recipe.networks is None else recipe.networks.warps[1:]
    return [cell._replace(warp=warp) for warp in others]


def at(recipe: Recipe, cell: NetworkAtSize) -> Recipe:
    """The recipe with this network at this size."""
    own, network, images = cell_of(recipe), recipe.model, recipe.images
    if cell.backbone != own.backbone:
        architecture = replace(network.architecture, backbone=cell.backbone, settings={})
        network = replace(network, architecture=architecture, weights=_weights(cell.backbone))
    if cell.size != own.size:
        images = replace(images, size=cell.size, short_side=short_side(cell.size))
    if cell.warp != own.warp:
        images = replace(images, warp=cell.warp)
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
