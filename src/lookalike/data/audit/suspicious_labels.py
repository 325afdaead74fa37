"""Labels that the neighbours contradict: images whose nearest images in an embedding agree on another class."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from lookalike.errors import check
from lookalike.geometry import compare, normalise

NEIGHBOURS = 10
BLOCK = 1024
Progress = Callable[[int, int], None]


class Doubt(NamedTuple):
    """A row, the class its neighbours name, and the share of them that do."""

    row: int
    other: int
    share: float


def suspicious_labels(
    embeddings: Float[Tensor, "n d"],
    labels: Int64[Tensor, " n"],
    *,
    agree: float = 0.8,
    progress: Progress | None = None,
) -> list[Doubt]:
    """Images with no neighbour of their own class while at least `agree` of the neighbours are of one other class.

    Each image is compared with as many neighbours as its class has other members, at most ten; classes of fewer than
    three images are skipped. The strongest doubt comes first.

    >>> angles = torch.tensor([0.0, 0.1, 0.2, 0.3, 1.5, 1.6, 1.7, 0.15])
    >>> points = torch.stack([angles.cos(), angles.sin()], 1)
    >>> suspicious_labels(points, torch.tensor([0, 0, 0, 0, 1, 1, 1, 1]))[0].row
    7
    """
    check(len(embeddings) == len(labels), f"{len(embeddings)} embeddings for {len(labels)} images: give one each")
    sizes = torch.bincount(labels)
    unit = normalise(embeddings, "sphere")
    doubts = []
    for begin in range(0, len(unit), BLOCK):
        rows = torch.arange(begin, min(begin + BLOCK, len(unit)))
        scores = compare(unit[rows], unit, None)
        scores[torch.arange(len(rows)), rows] = -torch.inf
        doubts += _doubts(scores, rows, labels, sizes, agree)
        if progress is not None:
            progress(int(rows[-1]) + 1, len(unit))
    return sorted(doubts, key=lambda doubt: (-doubt.share, doubt.row))


def _doubts(scores: Tensor, rows: Tensor, labels: Tensor, sizes: Tensor, agree: float) -> list[Doubt]:
    own = labels[rows]
    near, counted = _neighbours(scores, labels, sizes[own] - 1)
    other = near.mode(1).values
    share = (near == other[:, None]).sum(1) / counted.clamp_min(1)
    doubtful = ~(near == own[:, None]).any(1) & (share >= agree) & (sizes[own] > 2)
    return [Doubt(int(rows[at]), int(other[at]), float(share[at])) for at in doubtful.nonzero().flatten().tolist()]


def _neighbours(scores: Tensor, labels: Tensor, mates: Tensor) -> tuple[Tensor, Tensor]:
    """Labels of the nearest images, and how many of them count: at most as many as the class has other members."""
    count = min(NEIGHBOURS, scores.shape[1] - 1)
    near, counted = labels[scores.topk(count).indices], mates.clamp(max=count)
    place = torch.arange(count)
    return torch.where(
        place < counted[:, None], near, -1 - place
    ), counted  # a place that does not count matches nothing
