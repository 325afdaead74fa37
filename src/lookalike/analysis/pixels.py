"""Raw pixels as embeddings: what there is before any training, to look at batches and pair weights without a model."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import interpolate

from lookalike.data import Dataset
from lookalike.geometry import normalise

SIDE = 32


def pixel_vectors(
    dataset: Dataset, rows: list[int] | None = None, progress: Callable[[int, int], None] | None = None
) -> Float[Tensor, "n 1024"]:
    """Grey images of 32 × 32 less their mean, at length 1; of some rows, or of all.

    >>> import numpy as np
    >>> from lookalike.data import arrays
    >>> pixel_vectors(arrays(np.eye(40, dtype=np.uint8)[None], ["a"])).shape
    torch.Size([1, 1024])
    """
    wanted = list(range(len(dataset))) if rows is None else rows
    vectors = torch.empty(len(wanted), SIDE * SIDE)
    for done, row in enumerate(wanted, 1):
        image = dataset.images.open(row).decode().float().mean(0)
        if image.shape != (SIDE, SIDE):
            image = interpolate(image[None, None], (SIDE, SIDE), mode="bilinear", antialias=True)[0, 0]
        vectors[done - 1] = (image - image.mean()).flatten()
        if progress is not None:
            progress(done, len(wanted))
    return normalise(vectors, "sphere")
