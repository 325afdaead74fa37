"""Why an item was found: how much of its similarity comes from which places of both pictures [math k-why].

The vectors that ranked the item are sums over the positions of the network's last map. Their product is therefore a sum
over pairs of positions, one in each picture: nothing is estimated, and all contributions add up to the similarity.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from lookalike.geometry import Geometry
from lookalike.models import Model, Preprocessing
from lookalike.models.parts import parts_of, placed
from lookalike.models.preprocess import prepare, seen_part
from lookalike.search.heat import Heat, View, Why
from lookalike.search.queries import Box, pixels_of, views_of


@dataclass(frozen=True)
class ReadyPicture:
    """A picture as the network takes it, or with its mirror image, however large it was; and the part that this is."""

    inputs: Float[Tensor, "_ c h w"]
    view: View


@dataclass(frozen=True)
class SeenPicture:
    """A picture as the network sees it: the parts of its vector, in a grid over a part of the picture."""

    vectors: Float[Tensor, "p d"]
    grid: tuple[int, int]
    view: View


def ready(how: Preprocessing, picture: Tensor, box: Box | None = None, flip: bool = False) -> ReadyPicture:
    """A picture (3 × h × w), or the `box` of it; with `flip` together with its mirror image."""
    part = pixels_of(picture, box)
    inputs = torch.cat([prepare([view], how) for view in views_of(part, flip)])
    return ReadyPicture(inputs, _view(picture, part, box, how))


def seen(model: Model, picture: ReadyPicture) -> SeenPicture:
    parts = parts_of(model, picture.inputs)
    return SeenPicture(_together(parts.vectors, parts.grid, model.geometry), parts.grid, picture.view)


def _view(picture: Tensor, part: Tensor, box: Box | None, how: Preprocessing) -> View:
    (high, wide), (height, width) = picture.shape[1:], part.shape[1:]
    left, top = (0, 0) if box is None else (max(0, box[0]), max(0, box[1]))
    x, y, across, down = seen_part(height, width, how)
    return (left + x * width) / wide, (top + y * height) / high, across * width / wide, down * height / high


def _together(vectors: Tensor, grid: tuple[int, int], geometry: Geometry) -> Float[Tensor, "p d"]:
    """One set of parts: of the picture alone, or the mean with its mirror image, whose places are mirrored back."""
    if len(vectors) == 1:
        return vectors[0].double()
    mirrored = vectors[1].reshape(*grid, -1).flip(1).flatten(0, 1)
    return placed((vectors[:1].double() + mirrored.double()) / 2, geometry)[0]


def explained(query: SeenPicture, hit: SeenPicture, geometry: Geometry) -> Why:
    """What the similarity of two pictures is made of."""
    pairs = query.vectors @ hit.vectors.T
    if geometry != "sphere":
        squares = query.vectors.sum(0).square().sum() + hit.vectors.sum(0).square().sum()
        pairs = pairs - squares / (2 * pairs.numel())
    query_heat = Heat(pairs.sum(1).reshape(query.grid).numpy(), query.view)
    hit_heat = Heat(pairs.sum(0).reshape(hit.grid).numpy(), hit.view)
    return Why(float(pairs.sum()), query_heat, hit_heat)
