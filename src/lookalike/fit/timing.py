"""How long torch takes to embed an image, in this process alone: others of the run may be doing something else."""

import time
from itertools import pairwise

import torch
from torch import Tensor

from lookalike.data import Dataset
from lookalike.models import Model
from lookalike.models.encoding import batched
from lookalike.models.preprocess import prepare

TIMED = 8  # images
SECONDS, REPEATS = 0.2, 2  # at least
WARMING, MEASURED = 16, 64  # images, where the rate counts that a machine has beside its other work


def embedding_seconds(model: Model, images: Dataset) -> float:
    """Seconds per image: the quickest of several repeats, which other work disturbs least."""
    few = _first(images, TIMED)
    moments = [time.monotonic()]
    while len(moments) <= REPEATS or moments[-1] < moments[0] + SECONDS:
        _embed(model, few)
        moments.append(time.monotonic())
    return min(after - before for before, after in pairwise(moments)) / len(few)


def embedding_rate(model: Model, images: Dataset) -> float:
    """Images per second beside everything else on this machine; the first few pay for memory."""
    few = _first(images, MEASURED)
    _embed(model, _first(few, WARMING))
    start = time.monotonic()
    _embed(model, few)
    return len(few) / (time.monotonic() - start)


def _first(images: Dataset, count: int) -> Dataset:
    return images.subset(torch.arange(min(count, len(images))))


def _embed(model: Model, images: Dataset) -> None:
    def inputs(row: int) -> Tensor:
        return prepare([images.images.open(row).decode()], model.preprocessing)

    model.encode_inputs(batched(inputs, len(images), model.batch_size()), len(images))
