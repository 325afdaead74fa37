"""An embedding as a sum over the places of a picture [math k-why].

Pooling adds up positions of the feature map, and all that follows it is linear but for numbers that belong to the whole
picture: lengths, a standard deviation, which neurons fire. With these held at the picture's own values every position
has its part of the embedding; a bias belongs to all positions alike. The parts add up to the embedding, to rounding.
"""

from math import isqrt
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lookalike.errors import UserError, check
from lookalike.geometry import Geometry, normalise
from lookalike.models.embedder import Embedder
from lookalike.models.encoding import evaluating
from lookalike.models.model import Model
from lookalike.models.readout import CentredFeatures

SHORTEST = 1e-30  # of a vector that is divided by


class EmbeddingParts(NamedTuple):
    """The parts of embeddings: `vectors.sum(1)` are the embeddings, in the model's geometry.

    vectors: one for every position, row by row.
    grid: how many rows and columns of positions there are.
    """

    vectors: Float[Tensor, "n p d"]
    grid: tuple[int, int]


@torch.no_grad()
def parts_of(model: Model, inputs: Float[Tensor, "n c h w"]) -> EmbeddingParts:
    """The parts of the embeddings of images that have been prepared."""
    embedder = model.embedder
    if not isinstance(embedder, Embedder):
        raise UserError("only a network with a backbone and a head can be explained: this one is your own")
    shares = getattr(embedder.pooling, "shares", None)
    check(shares is not None, "this model reads the class token, which has no place in the picture: nothing to show")
    with evaluating(embedder):
        images = inputs.to(model.device).contiguous(memory_format=torch.channels_last)
        maps = embedder.backbone(images)
        columns = shares(maps, getattr(embedder.backbone, "prefix_tokens", 0))  # type: ignore[misc]
        parts = _read(embedder, columns.transpose(1, 2))
    return EmbeddingParts(placed(parts, model.geometry).cpu(), _grid(maps, parts.shape[1]))


def placed(parts: Float[Tensor, "n p d"], geometry: Geometry) -> Float[Tensor, "n p d"]:
    """`normalise`, part by part."""
    whole = parts.sum(1)
    factor: Tensor = normalise(whole, geometry).norm(dim=1) / whole.norm(dim=1).clamp(min=SHORTEST)
    return parts * factor[:, None, None]


def _read(embedder: Embedder, parts: Float[Tensor, "n p width"]) -> Float[Tensor, "n p d"]:
    """`Embedder.read`, part by part."""
    if embedder.centred is None:
        return _head(embedder.head, parts)
    centred = _centred(embedder.centred, parts)
    if embedder.readout.kind == "features":
        return centred
    weight = embedder.readout.head_weight
    head = placed(_head(embedder.head, parts), "sphere")
    return torch.cat([weight**0.5 * head, (1 - weight) ** 0.5 * placed(centred, "sphere")], 2)


def _head(head: nn.Sequential, parts: Float[Tensor, "n p width"]) -> Float[Tensor, "n p d"]:
    for layer in head:
        parts = _through(layer, parts)
    return parts


def _through(layer: nn.Module, parts: Float[Tensor, "n p width"]) -> Float[Tensor, "n p d"]:
    if isinstance(layer, nn.Linear):
        bias = 0 if layer.bias is None else layer.bias / parts.shape[1]
        return parts @ layer.weight.T + bias
    whole = parts.sum(1, keepdim=True)
    if isinstance(layer, nn.ReLU):
        return parts * (whole > 0)
    assert isinstance(layer, nn.LayerNorm)
    spread = (whole.var(2, correction=0, keepdim=True) + layer.eps).sqrt()
    return (parts - parts.mean(2, keepdim=True)) / spread


def _centred(centred: CentredFeatures, parts: Float[Tensor, "n p width"]) -> Float[Tensor, "n p d"]:
    moved = placed(parts, "sphere") - centred.mean / parts.shape[1]
    return moved if centred.directions is None else moved @ centred.directions.T


def _grid(maps: Tensor, places: int) -> tuple[int, int]:
    """Rows and columns; the tokens of a transformer come from a square crop."""
    if maps.dim() == 4:
        return maps.shape[2], maps.shape[3]
    side = isqrt(places)
    check(side * side == places, f"{places} tokens do not form a square: nothing to show")
    return side, side
