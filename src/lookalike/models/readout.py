"""From pooled features to the embedding: by the head, by the features themselves, or by both side by side.

A head trained on a few classes loses some of what unseen classes need; the features it reads still have it. Centred,
they are unit vectors less their mean over the train images: z = f / ‖f‖ − μ. Their principal components are P z, with
the rows of P from the train images (Jégou, Chum: Negative Evidences and Co-occurrences in Image Retrieval, ECCV 2012).
Side by side, √w h/‖h‖ and √(1 − w) z/‖z‖ are one vector whose cosine is w times the head's plus 1 − w times the
features'.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lookalike.errors import check, unknown
from lookalike.geometry import normalise

Kind = Literal["head", "features", "both"]


@dataclass(frozen=True)
class Readout:
    """What an embedding is made of, as plain data.

    kind: "head", "features" (pooled and centred) or "both" side by side.
    components: principal components of the centred features; None: all of the features.
    head_weight: w, the head's share of the similarity, when both stand side by side.

    >>> Readout("both", components=64, head_weight=0.3).dim(head=128, width=1280)
    192
    """

    kind: Kind = "head"
    components: int | None = None
    head_weight: float = 0.5  # w

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise unknown("readout", str(self.kind), get_args(Kind))
        count = self.components
        whole = count is None or (isinstance(count, int) and not isinstance(count, bool) and count > 0)
        check(whole, f"components must be a positive number or none, not {count}")
        check(
            self.kind != "head" or count is None, "components belong to the features: choose readout features or both"
        )
        share = isinstance(self.head_weight, int | float) and 0 < self.head_weight < 1
        check(share, f"head_weight must lie between 0 and 1, not {self.head_weight}")

    def dim(self, head: int | None, width: int) -> int:
        """The dimensions of an embedding, from those of the `head` (None: none) and the `width` of the features."""
        features = width if self.components is None else self.components
        check(features <= width, f"{features} components of {width} features: give at most {width}")
        if self.kind == "head":
            return width if head is None else head
        if self.kind == "features":
            check(head is None, "a readout of the features uses no head: set dim to none")
            return features
        check(head is not None, "a readout of both needs a head: set dim")
        return int(head or 0) + features


class CentredFeatures(nn.Module):
    """Directions as seen from the mean of the train images, or their principal components."""

    mean: Tensor
    directions: Tensor | None

    def __init__(self, width: int, components: int | None = None) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("directions", None if components is None else torch.eye(components, width))

    def fill(self, mean: Float[Tensor, " width"], directions: Float[Tensor, "k width"] | None) -> None:
        """Take over the statistics of the train images."""
        check(mean.shape == self.mean.shape, f"a mean of {len(mean)} numbers for {len(self.mean)} features")
        expected = 0 if self.directions is None else len(self.directions)
        axes = 0 if directions is None else len(directions)
        check(axes == expected, f"{expected} components need as many directions, not {axes}")
        self.mean.copy_(mean)
        if self.directions is not None and directions is not None:
            self.directions.copy_(directions)

    def forward(self, features: Float[Tensor, "n width"]) -> Float[Tensor, "n d"]:
        centred = normalise(features, "sphere") - self.mean
        return centred if self.directions is None else centred @ self.directions.T


def side_by_side(
    head: Float[Tensor, "n d"], features: Float[Tensor, "n k"], head_weight: float
) -> Float[Tensor, "n d_and_k"]:
    """One vector whose cosine is the weighted mean of two cosines.

    >>> side_by_side(torch.tensor([[3.0, 4.0]]), torch.tensor([[2.0]]), 0.36)
    tensor([[0.3600, 0.4800, 0.8000]])
    """
    parts = head_weight**0.5 * normalise(head, "sphere"), (1 - head_weight) ** 0.5 * normalise(features, "sphere")
    return torch.cat(parts, 1)


def principal_axes(centred: Float[Tensor, "n width"], count: int) -> Float[Tensor, "count width"]:
    """The `count` directions in which `centred` points spread most, the widest first, as unit vectors."""
    rank = min(centred.shape)
    check(count <= rank, f"{count} components need as many images, not {len(centred)}")
    points = centred.double()
    if len(points) > points.shape[1]:
        axes = torch.linalg.eigh(points.T @ points).eigenvectors.flip(1).T
    else:
        axes = torch.linalg.svd(points, full_matrices=False).Vh
    chosen: Tensor = axes[:count].float()
    return chosen * chosen.gather(1, chosen.abs().argmax(1, keepdim=True)).sign()  # the sign is arbitrary: fix it
