"""A network in two: the stages up to one, which stay as they are, and what comes after them.

The maps between the two are computed once for an image and kept; then training costs only what learns.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lookalike.errors import UserError
from lookalike.models.backbones.stages import Steps, through
from lookalike.models.embedder import Embedder
from lookalike.models.freezing import up_to


def check_cut(embedder: Embedder, stage: str) -> None:
    """Refuse a network that cannot be entered after this stage."""
    up_to(stage, embedder.backbone.stages)
    if getattr(embedder.backbone, "steps", None) is None:
        raise UserError(f"{type(embedder.backbone).__name__} cannot be entered after a stage: leave out features.upto")


def _steps(embedder: Embedder, stage: str, later: bool) -> Steps:
    names = up_to(stage, embedder.backbone.stages)
    steps: Steps = embedder.backbone.steps  # type: ignore[attr-defined]
    return [(name, step) for name, step in steps if (name not in names) == later]


class Beginning(nn.Module):
    """The stages of an `embedder` up to `stage`: images in, maps out, each as one row."""

    def __init__(self, embedder: Embedder, stage: str) -> None:
        super().__init__()
        self.embedder, self.stage = embedder, stage

    def forward(self, images: Float[Tensor, "n c h w"]) -> Float[Tensor, "n values"]:
        return self.maps(images).flatten(1)

    def maps(self, images: Float[Tensor, "n c h w"]) -> Float[Tensor, "n *map"]:
        """The maps themselves; of a transformer, tokens."""
        images = images.contiguous(memory_format=torch.channels_last)
        return through(_steps(self.embedder, self.stage, later=False), images, None)


class Rest(nn.Module):
    """The stages of an `embedder` after `stage`, its pooling and its head: rows of maps of this `shape` in, embeddings
    out. Weights are those of the embedder."""

    def __init__(self, embedder: Embedder, stage: str, shape: tuple[int, ...]) -> None:
        super().__init__()
        self.embedder, self.stage, self.shape = embedder, stage, shape

    def forward(self, rows: Float[Tensor, "n values"]) -> Float[Tensor, "n d"]:
        maps = rows.reshape(len(rows), *self.shape)
        if maps.dim() == 4:
            maps = maps.contiguous(memory_format=torch.channels_last)
        maps = through(_steps(self.embedder, self.stage, later=True), maps, None)
        return self.embedder.read(self.embedder.pool(maps))
