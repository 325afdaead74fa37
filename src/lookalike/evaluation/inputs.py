"""What a user hands to an evaluation, checked once: finite matrices of vectors, and labels of any hashable kind."""

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from lookalike.errors import UserError, check
from lookalike.geometry import check_embeddings

Vectors = Float[Tensor, "n d"] | Float[np.ndarray, "n d"]
Items = Float[Tensor, "m d"] | Float[np.ndarray, "m d"]
Codes = NDArray[np.int64]
CHUNK = 1024


def as_vectors(vectors: Tensor | NDArray[Any], name: str = "embeddings") -> Tensor:
    """The embeddings as a detached tensor; refused unless a finite, non-empty matrix of floating-point numbers."""
    if isinstance(vectors, np.ndarray):
        check(vectors.dtype.kind == "f", f"{name} must be floating point, not {vectors.dtype}: use .astype('float32')")
        # torch warns about arrays it may not write to; nothing is written, so a view made writable is safe
        vectors = torch.from_numpy(vectors if vectors.flags.writeable else vectors.copy())
    check(isinstance(vectors, Tensor), f"{name} must be a torch tensor or numpy array, not {type(vectors).__name__}")
    vectors = vectors.detach()
    check(vectors.dim() == 2, f"{name} must be a matrix n × d, not of shape {tuple(vectors.shape)}")
    check_embeddings(vectors)
    check(vectors.numel() > 0, f"{name} are empty (shape {tuple(vectors.shape)}): give at least one vector")
    for start in range(0, len(vectors), CHUNK):
        part = vectors[start : start + CHUNK]
        if not all(math.isfinite(float(end)) for end in part.aminmax()):
            row = start + int((~torch.isfinite(part)).any(1).nonzero()[0])
            raise UserError(f"{name} hold NaN or infinite values (first in row {row}): was training stable?")
    return vectors


def values_of(labels: Any, name: str, length: int) -> list[Hashable]:
    """The labels as a list of hashable values, one per row."""
    check(not isinstance(labels, str), f"{name} must be a sequence with one value per row, not one string")
    if isinstance(labels, Tensor):
        labels = labels.detach().cpu().numpy()
    if isinstance(labels, np.ndarray):
        check(labels.ndim == 1, f"{name} must be a vector, not of shape {labels.shape}")
        labels = labels.tolist()
    check(
        isinstance(labels, Iterable), f"{name} must be a sequence with one value per row, not {type(labels).__name__}"
    )
    values = [value.item() if isinstance(value, np.generic | Tensor) else value for value in labels]
    check(len(values) == length, f"{len(values)} {name} for {length} embeddings: give one each")
    return values


def encode(*columns: Sequence[Hashable]) -> tuple[list[Codes], list[Hashable]]:
    """Numbers 0, 1, … for the values of all columns together, and the values; in sorted order where they have one.

    >>> encode(["cat", "ant"], ["ant", "bee"])
    ([array([2, 0]), array([0, 1])], ['ant', 'bee', 'cat'])
    """
    try:
        known: Iterable[Any] = dict.fromkeys(value for column in columns for value in column)
    except TypeError as error:
        raise UserError(f"labels must be hashable values such as numbers, strings or tuples ({error})") from None
    try:
        names: list[Hashable] = sorted(known)
    except TypeError:  # values of different kinds have no order: the order of appearance will do
        names = list(known)
    number = {name: code for code, name in enumerate(names)}
    return [np.array([number[value] for value in column], np.int64) for column in columns], names
