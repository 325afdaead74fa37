"""Raw pixels as vectors: what can be compared before any training."""

from jaxtyping import Float
from torch import Tensor, nn

from lookalike.data import Dataset
from lookalike.features.embedding import embed
from lookalike.geometry import normalise
from lookalike.models import Model, Preprocessing
from lookalike.models.preprocess import GREY
from lookalike.progress import Progress

SIDE = 32  # of the thumbnails


def pixels(dataset: Dataset, colours: Preprocessing, progress: Progress | None = None) -> Float[Tensor, "n d"]:
    """Thumbnails of at most 32 × 32 pixels, at length 1; `colours`: the preprocessing of the model to compare with."""
    return normalise(_thumbnails(dataset, colours, progress), "sphere")


def centred_pixels(dataset: Dataset, progress: Progress | None = None) -> Float[Tensor, "n d"]:
    """Grey thumbnails less their mean, at length 1: without it paper and ink decide every comparison.

    >>> import numpy as np
    >>> from lookalike.data import arrays
    >>> centred_pixels(arrays(np.eye(40, dtype=np.uint8)[None], ["a"])).shape
    torch.Size([1, 1024])
    """
    vectors = _thumbnails(dataset, GREY, progress)
    return normalise(vectors - vectors.mean(1, keepdim=True), "sphere")


def _thumbnails(dataset: Dataset, colours: Preprocessing, progress: Progress | None) -> Float[Tensor, "n d"]:
    side = min(SIDE, colours.crop)
    return embed(Model(nn.Flatten(), colours.sized(side, side), geometry="none"), dataset, progress)
