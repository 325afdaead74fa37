"""Groups: k-means (Lloyd 1982, the settings of faiss), greedy k-center (Chance Constraints, sec. 3.3), linked nodes."""

from collections.abc import Iterable
from importlib.util import find_spec
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Integer
from torch import Tensor

from lookalike.errors import check, install, unknown
from lookalike.progress import Progress

BLOCK = 2**23  # distances held at once
SHIFT = 1 / 1024  # how far the two halves of a split cluster are moved apart, as in faiss
Backend = Literal["auto", "faiss", "torch"]


class KMeans(NamedTuple):
    """`assignment[i]` is the nearest of the `centres` to point i."""

    assignment: Integer[Tensor, " n"]
    centres: Float[Tensor, "k d"]
    objective: float  # Σ squared distances to the nearest centre


def k_means(
    points: Float[Tensor, "n d"],
    clusters: int,
    *,
    iterations: int = 20,
    seed: int = 1234,
    backend: Backend = "auto",
    progress: Progress | None = None,
) -> KMeans:
    """Lloyd's algorithm from random points, without restarts; an empty cluster takes half of the largest one.

    `auto` uses faiss where it is installed. Both start from the same points; the same seed gives the same result with
    the same backend, and differences between the two come from rounding and from how empty clusters are filled.

    >>> line = torch.tensor([[0.0], [1.0], [10.0], [11.0]])
    >>> sorted(k_means(line, 2, backend="torch").centres.flatten().tolist())
    [0.5, 10.5]
    """
    if backend not in ("auto", "faiss", "torch"):
        raise unknown("k-means backend", backend, ("auto", "faiss", "torch"))
    check(
        0 < clusters <= len(points),
        f"k-means needs 1 to {len(points)} clusters for {len(points)} points, not {clusters}",
    )
    check(iterations > 0, f"k-means needs at least one iteration, not {iterations}")
    points = points.detach().float()
    check(bool(torch.isfinite(points).all()), "the points hold NaN or infinite values")
    start = torch.randperm(len(points), generator=torch.Generator().manual_seed(seed))[:clusters]
    centres = points[start.to(points.device)].clone()
    installed = find_spec("faiss") is not None
    check(installed or backend != "faiss", f"faiss is not installed: {install('faiss')}, or choose backend='torch'")
    if backend != "torch" and installed and points.device.type == "cpu":
        centres = _lloyd_faiss(points, centres, iterations, progress)
    else:
        centres = _lloyd(points, centres, iterations, progress)
    assignment, distances = nearest_centres(points, centres)
    return KMeans(assignment, centres, float(distances.sum()))


def nearest_centres(
    points: Float[Tensor, "n d"], centres: Float[Tensor, "k d"]
) -> tuple[Integer[Tensor, " n"], Float[Tensor, " n"]]:
    """The nearest centre of every point (of equally near ones the first) and its squared distance, block by block."""
    assignment = torch.empty(len(points), dtype=torch.int64, device=points.device)
    distances = points.new_empty(len(points))
    # ⟨x, c⟩ − ‖c‖²/2 as one product into one buffer: the nearest centre has the largest
    lifted = torch.cat((centres, centres.square().sum(1, keepdim=True) / -2), 1)
    step = min(max(1, BLOCK // len(centres)), len(points))
    scores = points.new_empty(step, len(centres))
    for begin in range(0, len(points), step):
        part = points[begin : begin + step]
        block = scores[: len(part)]
        torch.mm(torch.cat((part, torch.ones_like(part[:, :1])), 1), lifted.T, out=block)
        best, assignment[begin : begin + step] = block.max(1)
        distances[begin : begin + step] = (part.square().sum(1) - 2 * best).clamp(min=0)
    return assignment, distances


def _lloyd(points: Tensor, centres: Tensor, iterations: int, progress: Progress | None) -> Tensor:
    for done in range(1, iterations + 1):
        assignment, _ = nearest_centres(points, centres)
        sizes = torch.bincount(assignment, minlength=len(centres))
        sums = torch.zeros_like(centres).index_add_(0, assignment, points)
        centres = torch.where(sizes[:, None] > 0, sums / sizes.clamp(min=1)[:, None], centres)
        _split_largest(centres, sizes)
        if progress is not None:
            progress(done, iterations)
    return centres


def _split_largest(centres: Tensor, sizes: Tensor) -> None:
    """Gives each empty cluster half of the largest one: both move a little apart, in alternating directions."""
    shift = centres.new_full((centres.shape[1],), SHIFT)
    shift[1::2] = -SHIFT
    for empty in (sizes == 0).nonzero().flatten().tolist():
        largest = int(sizes.argmax())
        centres[empty] = centres[largest] * (1 + shift)
        centres[largest] = centres[largest] * (1 - shift)
        sizes[empty] = sizes[largest] // 2
        sizes[largest] -= sizes[empty]


def _lloyd_faiss(points: Tensor, centres: Tensor, iterations: int, progress: Progress | None) -> Tensor:
    """One iteration at a time, so that progress can be reported."""
    import faiss

    data = points.contiguous().numpy()
    means = centres.numpy()
    for done in range(1, iterations + 1):
        solver = faiss.Kmeans(
            data.shape[1], len(means), niter=1, seed=1234, min_points_per_centroid=1, max_points_per_centroid=len(data)
        )
        solver.train(data, init_centroids=means)
        means = np.asarray(solver.centroids, np.float32)
        if progress is not None:
            progress(done, iterations)
    return torch.from_numpy(means.copy())


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
    indices = []
    for _ in range(count):
        farthest = nearest.argmax(-1, keepdim=True)
        indices.append(farthest)
        centre = torch.take_along_dim(points, farthest[..., None], dim=-2)
        nearest = torch.minimum(
            nearest, torch.cdist(points, centre, compute_mode="donot_use_mm_for_euclid_dist")[..., 0]
        )
    return torch.cat(indices, -1)


def connected(count: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    """For each of `count` nodes the one that stands for all that are connected with it, directly or by others.

    >>> connected(5, [(0, 1), (3, 4), (4, 1)])
    [1, 1, 2, 1, 1]
    """
    parent = list(range(count))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for one, other in pairs:
        parent[root(one)] = root(other)
    return [root(node) for node in range(count)]
