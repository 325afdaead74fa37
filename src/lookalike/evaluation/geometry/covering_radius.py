"""Covering radius of classes [math F.9] (Chance Constraints, sec. 1.2): how far a class's points are from k centres.

r_k = the largest distance of a point to the nearest of the first k greedy centres; the first centre is the point whose
farthest point is nearest, the next ones are farthest first. A class counts with the mean of r_1 … r_n, r_n = 0.
"""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lookalike.evaluation.inputs import Codes

GATHERED = 2**24


def first_centre(points: Float[Tensor, "n d"]) -> int:
    step = max(1, GATHERED // len(points))
    farthest = [torch.cdist(points[start : start + step], points).amax(1) for start in range(0, len(points), step)]
    return int(torch.cat(farthest).argmin())


def radii(points: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
    """r_1 … r_n of one class.

    >>> radii(torch.tensor([[0.0], [1.0], [5.0]])).tolist()
    [4.0, 1.0, 0.0]
    """
    points = points.double()
    centre = first_centre(points)
    nearest = torch.full((len(points),), torch.inf, dtype=torch.float64, device=points.device)
    values = []
    for _ in range(len(points)):
        nearest = torch.minimum(nearest, (points - points[centre]).square().sum(1).sqrt())
        radius, farthest = nearest.max(0)
        values.append(radius)
        centre = int(farthest)
    return torch.stack(values)


def covering_radius(vectors: Float[Tensor, "n d"], codes: Codes) -> float:
    """The mean over classes of the mean radius."""
    order = np.argsort(codes, kind="stable")
    pieces = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
    return float(np.mean([float(radii(vectors[torch.from_numpy(piece)]).mean()) for piece in pieces]))


def between_classes(vectors: Float[Tensor, "n d"], codes: Codes) -> float:
    """The mean distance between items of different classes: the scale to read the covering radius on."""
    classes = torch.from_numpy(codes).to(vectors.device)
    total, pairs, step = 0.0, 0, max(1, GATHERED // len(vectors))
    for start in range(0, len(vectors), step):
        distances = torch.cdist(vectors[start : start + step], vectors)
        other = classes[start : start + step, None] != classes
        total += float(distances[other].sum(dtype=torch.float64))
        pairs += int(other.sum())
    return total / pairs if pairs else float("nan")
