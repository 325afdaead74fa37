"""Labels that the neighbours contradict: images whose nearest images in an embedding agree on another class."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from lookalike.data.formats.table import guarded
from lookalike.errors import check
from lookalike.files import whole_file
from lookalike.geometry import compare, normalise
from lookalike.progress import Progress

NEIGHBOURS = 10
BLOCK = 1024
AGREE = 0.8  # of the neighbours, at least, are of one other class
COLUMNS = ("path", "label", "suggested label", "evidence")


class Doubt(NamedTuple):
    """A row, the class its neighbours suggest, how many of how many do, and the nearest image of that class."""

    row: int
    other: int
    votes: int
    neighbours: int
    nearest: int
    similarity: float

    @property
    def share(self) -> float:
        return self.votes / self.neighbours

    def evidence(self, nearest: str) -> str:
        """Why the label is in doubt, with the name of the nearest image."""
        votes = f"{self.votes} of its {self.neighbours} nearest images have the suggested label, none has its own"
        return f"{votes}; the nearest is {nearest} (similarity {self.similarity:.3f})"


def suspicious_labels(
    embeddings: Float[Tensor, "n d"],
    labels: Int64[Tensor, " n"],
    *,
    rows: Int64[Tensor, " m"] | None = None,
    progress: Progress | None = None,
) -> list[Doubt]:
    """Images with no neighbour of their own class while at least 80% of the neighbours are of one other class.

    Each image is compared with as many neighbours as its class has other members, at most ten; classes of fewer than
    three images are skipped. The strongest doubt comes first. With `rows`, only these images are looked at.

    >>> angles = torch.tensor([0.0, 0.1, 0.2, 0.3, 1.5, 1.6, 1.7, 0.15])
    >>> points = torch.stack([angles.cos(), angles.sin()], 1)
    >>> suspicious_labels(points, torch.tensor([0, 0, 0, 0, 1, 1, 1, 1]))[0].row
    7
    """
    check(len(embeddings) == len(labels), f"{len(embeddings)} embeddings for {len(labels)} images: give one per image")
    sizes = torch.bincount(labels)
    unit = normalise(embeddings, "sphere")
    doubts: list[Doubt] = []
    images = torch.arange(len(unit)) if rows is None else rows
    for begin in range(0, len(images), BLOCK):
        block = images[begin : begin + BLOCK]
        scores = compare(unit[block], unit, None)
        scores[torch.arange(len(block)), block] = -torch.inf
        doubts += _doubts(scores, block, labels, sizes)
        if progress is not None:
            progress(begin + len(block), len(images))
    return sorted(doubts, key=lambda doubt: (-doubt.share, doubt.row))


def _doubts(scores: Tensor, rows: Tensor, labels: Tensor, sizes: Tensor) -> list[Doubt]:
    own = labels[rows]
    nearest = scores.topk(min(NEIGHBOURS, scores.shape[1] - 1))
    place = torch.arange(nearest.indices.shape[1])
    # no more neighbours of its own class can be expected than the class has other members
    counted = (sizes[own] - 1).clamp(max=len(place))
    near = torch.where(place < counted[:, None], labels[nearest.indices], -1 - place)  # the others match nothing
    other = near.mode(1).values
    votes = (near == other[:, None]).sum(1)
    doubtful = ~(near == own[:, None]).any(1) & (votes >= AGREE * counted) & (sizes[own] > 2)
    doubts = []
    for at in doubtful.nonzero().flatten().tolist():
        first = int((near[at] == other[at]).nonzero()[0])
        image, similarity = int(nearest.indices[at, first]), float(nearest.values[at, first])
        doubts.append(Doubt(int(rows[at]), int(other[at]), int(votes[at]), int(counted[at]), image, similarity))
    return doubts


def as_table(doubts: Sequence[Doubt], labels: Sequence[str], paths: Sequence[str]) -> list[dict[str, str]]:
    """One row per doubt, with everything somebody needs who opens the image and decides; keys are COLUMNS."""
    rows = []
    for doubt in doubts:
        cells = (paths[doubt.row], labels[doubt.row], labels[doubt.nearest], doubt.evidence(paths[doubt.nearest]))
        rows.append(dict(zip(COLUMNS, cells, strict=True)))
    return rows


def write_table(rows: Sequence[dict[str, str]], path: Path) -> None:
    """The table as CSV."""
    with whole_file(path, "w") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: guarded(cell) for name, cell in row.items()} for row in rows)
