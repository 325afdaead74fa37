"""Groups of points: greedy k-center (Chance Constraints, sec. 3.3; Gonzalez 1985)."""

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from lookalike.errors import check


def greedy_k_center(
    points: Float[Tensor, "*batch n d"], count: int, centres: Float[Tensor, "*batch k d"]
) -> Integer[Tensor, "*batch count"]:
    """Farthest-first traversal: `count` times the point farthest from all centres so far, starting from `centres`.

    Distances are Euclidean; of equally far points the lowest index is taken, and when all points are centres already,
    indices repeat. Leading dimensions are independent problems solved together.

    >>> line = torch.tensor([[0.0], [1.0], [5.0], [9.0]])
    >>> greedy_k_center(line, 3, centres=torch.tensor([[0.0]]))
    tensor([3, 2, 1])
    """
    check(count > 0, f"k-center needs at least one centre, not {count}")
    nearest = torch.cdist(points, centres, compute_mode="donot_use_mm_for_euclid_dist").amin(-1)
    chosen = []
    for _ in range(count):
        farthest = nearest.argmax(-1, keepdim=True)
        chosen.append(farthest)
        centre = torch.take_along_dim(points, farthest[..., None], dim=-2)
        nearest = torch.minimum(nearest, torch.cdist(points, centre, compute_mode="donot_use_mm_for_euclid_dist")[..., 0])
    return torch.cat(chosen, -1)
