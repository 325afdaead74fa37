"""What a user hands to an evaluation, checked once: finite matrices of vectors."""

import math
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from lookalike.errors import NotFiniteError, check
from lookalike.loss_inputs import check_embeddings

Vectors = Float[Tensor, "n d"] | Float[np.ndarray, "n d"]
Items = Float[Tensor, "m d"] | Float[np.ndarray, "m d"]
Codes = NDArray[np.int64]
CHUNK = 1024


def as_vectors(vectors: Tensor | NDArray[Any], name: str = "embeddings") -> Tensor:
    """The embeddings as a detached tensor; refused unless a finite, non-empty matrix of floating-point numbers."""
    if isinstance(vectors, np.ndarray):
        check(vectors.dtype.kind == "f", f"{name} must be floating point, not {vectors.dtype}: use .astype('float32')")
        vectors = torch.from_numpy(_plain(vectors))
    check(isinstance(vectors, Tensor), f"{name} must be a torch tensor or numpy array, not {type(vectors).__name__}")
    vectors = vectors.detach()
    check(vectors.layout == torch.strided, f"{name} must be a dense tensor: call .to_dense() on them")
    check(vectors.dim() == 2, f"{name} must be a matrix n × d, not of shape {tuple(vectors.shape)}")
    check_embeddings(vectors)
    check(vectors.numel() > 0, f"{name} are empty (shape {tuple(vectors.shape)}): give at least one vector")
    for start in range(0, len(vectors), CHUNK):
        part = vectors[start : start + CHUNK]
        if not all(math.isfinite(float(end)) for end in part.aminmax()):
            row = start + int((~torch.isfinite(part)).any(1).nonzero()[0])
            raise NotFiniteError(f"{name} hold NaN or infinite values (first in row {row}): was training stable?")
    return vectors


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """The array as torch takes it: of this machine's byte order, forwards, writable; a copy only where it is not."""
    known = array.dtype.newbyteorder("=") if array.dtype.itemsize <= 8 else np.dtype(np.float64)
    backwards = any(stride < 0 for stride in array.strides)
    as_it_is = array.dtype == known and array.flags.writeable and not backwards
    return array if as_it_is else np.array(array, known, order="C")
