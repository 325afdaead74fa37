"""The images of a data set as vectors that are not kept: of a model that still changes, or of their raw pixels."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lookalike.data import Dataset
from lookalike.geometry import normalise
from lookalike.models import Embedder, Model, Preprocessing
from lookalike.models.backends import Backend, BackendName
from lookalike.models.encoding import batched, evaluating
from lookalike.models.preprocess import GREY, prepare
from lookalike.processes import Ranks
from lookalike.progress import Progress

AT_ONCE = 4096  # vectors through the head
SIDE = 32  # of the thumbnails


def embed(
    model: Model, dataset: Dataset, progress: Progress | None = None, backend: BackendName | Backend = "torch"
) -> Float[Tensor, "n d"]:
    """The embeddings of all images, in all processes of a run; each process computes a share of them."""
    return Ranks.current().spread(len(dataset), lambda rows: _encode(model, dataset.subset(rows), progress, backend))


def _encode(model: Model, dataset: Dataset, progress: Progress | None, backend: BackendName | Backend) -> Tensor:
    def inputs(row: int) -> Tensor:
        return prepare([dataset.images.open(row).decode()], model.preprocessing)

    batches = batched(inputs, len(dataset), model.batch_size())
    return model.encode_inputs(batches, len(dataset), progress, backend)


def encode_rows(
    model: Model, inputs: Callable[[int], Tensor], count: int, backend: Backend, progress: Progress | None = None
) -> Float[Tensor, "n d"]:
    """The vectors of the inputs 0 … count − 1, which threads prepare.

    Batches are filled up: a vector does not depend on what is computed beside it.
    """
    size = model.batch_size()
    padded = -(-count // size) * size
    batches = batched(lambda place: inputs(min(place, count - 1)), padded, size)

    def tell(done: int, _: int) -> None:
        if progress is not None:
            progress(min(done, count), count)

    return model.encode_inputs(batches, padded, tell, backend)[:count]


@torch.no_grad()
def embed_features(model: Model, features: Float[Tensor, "n width"]) -> Float[Tensor, "n d"]:
    """The embeddings, n × d, of images whose `features`, n × width, are known: only the head is computed."""
    assert isinstance(model.embedder, Embedder)
    with evaluating(model.embedder.head):  # the backbone has been computed
        parts = [model.embedder.read(part.to(model.device)).float().cpu() for part in torch.split(features, AT_ONCE)]
    return normalise(torch.cat(parts), model.geometry)


def features(model: Model, dataset: Dataset, progress: Progress | None = None) -> Float[Tensor, "n width"]:
    """The pooled features of all images: the input of the model's head."""
    return embed(model.headless(), dataset, progress)


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
