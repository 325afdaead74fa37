"""The linear head before the backbone learns: from the features of the frozen backbone, computed once.

`principal` starts the head as the principal components of those features: at 128 of 1280 dimensions nearly all that the
frozen backbone knows stays (Jégou, Chum: Negative Evidences and Co-occurrences in Image Retrieval: The Benefit of PCA
and Whitening, ECCV 2012), where a random head starts from nothing and one trained on few classes forgets
(to compare: benchmarks/default_recipe.py).
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lookalike.errors import UserError
from lookalike.models import Embedder, principal_axes


def linear(embedder: Embedder) -> nn.Linear:
    """The linear layer of the head."""
    layer = embedder.head[-1] if len(embedder.head) else None
    if not isinstance(layer, nn.Linear):
        raise UserError("this network has no linear head that features could initialise: set model.dim")
    return layer


@torch.no_grad()
def principal(embedder: Embedder, features: Float[Tensor, "n width"]) -> None:
    """Fill the linear head of an `embedder` so that it gives the principal components of its features, centred.

    `features`: those of the frozen backbone, n × width, before the head.

    >>> from lookalike.models import Conv4
    >>> embedder = Embedder(Conv4(channels=1), dim=2)
    >>> points = torch.randn(50, 64, generator=torch.Generator().manual_seed(0))
    >>> principal(embedder, points)
    >>> spread = embedder.head(points).var(0)
    >>> bool(spread[0] > spread[1])
    True
    """
    layer = linear(embedder)
    inputs = embedder.head[:-1](features)
    length = inputs.norm(dim=1).mean().clamp(min=1e-12)  # one scale for all: the head stays linear
    points = inputs / length
    centre = points.mean(0)
    axes = principal_axes(points - centre, layer.out_features)
    layer.weight.copy_(axes / length)
    if layer.bias is not None:
        layer.bias.copy_(-(axes @ centre))
