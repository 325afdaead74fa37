"""Images that are the same photo: to the byte, or to the eye."""

import numpy as np
import torch
from jaxtyping import Int64
from torch import Tensor

from lookalike.data.audit.scan import Scan, scan
from lookalike.data.dataset import Dataset
from lookalike.progress import Progress

BITS = 10  # of 64; the correlation decides, so this only has to let all candidates through
LEAST = 0.97
SIDE = 16  # of the thumbnails that are compared


def exact_groups(scanned: Scan) -> Int64[Tensor, " n"]:
    """The group of every image that has the same bytes as another; −1 for the others."""
    keys = np.ascontiguousarray(scanned.digests).view("V16").ravel()
    _, group = np.unique(keys, return_inverse=True)
    return _shared_only(np.where(scanned.readable, group, -1))


def near_groups(scanned: Scan) -> Int64[Tensor, " n"]:
    """The group of every image that looks the same as another (copies, other sizes, compressions)."""
    from lookalike.data.audit.hamming import link

    exact = exact_groups(scanned).numpy()
    parent = np.arange(len(scanned.hashes))
    # exact copies are united first, and one of them is compared for all
    first = np.full(exact.max(initial=-1) + 2, -1, np.int64)  # the last entry serves the −1 of images without a copy
    rows = np.flatnonzero(exact >= 0)[::-1]
    first[exact[rows]] = rows
    alone = np.flatnonzero(scanned.readable & ((exact < 0) | (first[exact] == np.arange(len(exact)))))
    forest = np.arange(len(alone))
    link(scanned.hashes[alone], np.ascontiguousarray(scanned.shapes[alone]), forest, BITS, LEAST)
    parent[alone] = alone[_flat(forest)]
    copies = np.flatnonzero(exact >= 0)
    parent[copies] = parent[first[exact[copies]]]
    return _shared_only(np.where(scanned.readable, parent, -1))


def mirror_groups(scanned: Scan) -> list[list[int]]:
    """Groups of images that look the same once some of them are mirrored; one without a mirror image is in none."""
    from lookalike.data.audit.hamming import link

    rows = np.flatnonzero(scanned.readable)
    count, shapes = len(rows), scanned.shapes[rows]
    turned = shapes.reshape(count, SIDE, SIDE)[:, :, ::-1].reshape(count, SIDE * SIDE)
    forest = np.arange(2 * count)  # every image, then every mirror image
    hashes = np.concatenate([scanned.hashes[rows], scanned.mirrored[rows]])
    link(hashes, np.ascontiguousarray(np.concatenate([shapes, turned])), forest, BITS, LEAST)
    roots = _flat(forest)
    mirrored = set(roots[:count].tolist()) & set(roots[count:].tolist())  # trees that hold both kinds
    members: dict[int, set[int]] = {root: set() for root in mirrored}
    for place, root in enumerate(roots.tolist()):
        if root in members:
            members[root].add(int(rows[place % count]))
    return [list(group) for group in sorted({tuple(sorted(group)) for group in members.values() if len(group) > 1})]


def near_duplicate_groups(dataset: Dataset, *, progress: Progress | None = None) -> Int64[Tensor, " n"]:
    """Groups of near duplicates in a data set (−1: none), for `class_disjoint(..., together=...)`."""
    return near_groups(scan(dataset, progress=progress))


def _flat(parent: np.ndarray) -> np.ndarray:
    """Every row's root."""
    while True:
        above = parent[parent]
        if np.array_equal(above, parent):
            return parent
        parent = above


def _shared_only(group: np.ndarray) -> Int64[Tensor, " n"]:
    """Groups of at least two, numbered 0, 1, …; all others −1."""
    values, place, counts = np.unique(group, return_inverse=True, return_counts=True)
    real = (counts > 1) & (values >= 0)
    number = np.where(real, np.cumsum(real) - 1, -1)
    return torch.from_numpy(number[place].astype(np.int64))
