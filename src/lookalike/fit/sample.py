"""Fewer images that still represent all, where there is not enough time for every one."""

import math
import time
from collections.abc import Iterator
from contextlib import suppress

import torch
from jaxtyping import Int64
from torch import Tensor

from lookalike.data import Dataset
from lookalike.errors import check
from lookalike.fit.plan import SPARE
from lookalike.image_files import UnreadableError
from lookalike.models import Model
from lookalike.models.backends import possible as has_onnx
from lookalike.models.preprocess import prepare
from lookalike.processes import Ranks
from lookalike.recipe import Recipe
from lookalike.runs import OpenRun

PER_CLASS = 8  # below so many images of each, whole classes are left out instead
MANY, LEAST = 1000, 400  # images up to which all are taken, and that are taken in any case
MEASURED = 24  # images
ONNX = 2.5  # times as fast as torch
SHARE = 0.4  # of the minutes, for what every image takes before and after training
BESIDES = 2e-3  # seconds to audit and rank an image


def affordable(dataset: Dataset, recipe: Recipe, model: Model, run: OpenRun, decision: str = "sample") -> Dataset:
    """The images for which there is time; a resumed run takes as many as it took before, by the same `decision`."""
    minutes = recipe.train.minutes
    if minutes is None or len(dataset) <= MANY:
        return dataset
    count = run.decisions.get(decision)
    if count is None:
        each = Ranks.current().from_first(lambda: _seconds_per_image(dataset, recipe, model))
        count = fitting(len(dataset), minutes, each)
        text = f"all {len(dataset):,} images fit {minutes:g} minutes"
        if count < len(dataset):
            needed = math.ceil(len(dataset) * each / SHARE / SPARE / 60)
            text = (
                f"{minutes:g} minutes are enough for {count:,} of {len(dataset):,} images: as many of each class "
                f"train and test; all of them would need about {needed} minutes"
            )
        run.decisions.make(decision, count)
        run.tell({"event": "sample", "count": count, "text": text})
    return evenly(dataset, count, recipe.seed)


def _seconds_per_image(dataset: Dataset, recipe: Recipe, model: Model) -> float:
    """The time to decode an image on two cores and to compute its features, for test images twice."""
    rows = torch.linspace(0, len(dataset) - 1, MEASURED).long()
    start = time.monotonic()
    readable = list(_inputs(dataset.subset(rows), model))
    check(bool(readable), f"{dataset.name}: none of {MEASURED} images can be read: check them with lookalike audit")
    inputs = torch.cat(readable)
    decoding = (time.monotonic() - start) / len(rows)
    model.encode_inputs([inputs], len(inputs))  # pays for memory
    start = time.monotonic()
    model.encode_inputs([inputs], len(inputs))
    embedding = (time.monotonic() - start) / len(inputs)
    return seconds_per_image(recipe, decoding / 2, embedding)


def seconds_per_image(recipe: Recipe, decoding: float, embedding: float) -> float:
    """The time that an image takes in a whole run, from that of its decoding and of its embedding by torch."""
    faster = ONNX if has_onnx() and recipe.model.weights is not None else 1.0
    return decoding + (1 + recipe.data.test) * embedding / faster + BESIDES


def fitting(count: int, minutes: float, each: float) -> int:
    """How many of `count` images fit in the time, if each takes `each` seconds."""
    return min(count, max(LEAST, int(SHARE * 60 * minutes / each)))


def _inputs(images: Dataset, model: Model) -> Iterator[Tensor]:
    how = model.preprocessing
    for row in range(len(images)):
        with suppress(UnreadableError):  # listed when all images are decoded
            picture = images.images.open(row)
            side = min(picture.height, picture.width)
            yield prepare([picture.decode(min(1.0, (how.resize or how.crop) / side))], how)


def evenly(dataset: Dataset, count: int, seed: int) -> Dataset:
    """At most `count` images, spread evenly over the classes, in their own order."""
    if len(dataset) <= count:
        return dataset
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(dataset), generator=generator)
    turn = turns(dataset.labels[order])
    rank = torch.randperm(dataset.classes, generator=generator)
    late = rank[dataset.labels[order]] >= max(2, count // PER_CLASS)  # classes for which there is no room
    first = torch.argsort(late * len(dataset) + turn, stable=True)[:count]
    return dataset.subset(order[first].sort().values)


def turns(labels: Int64[Tensor, " n"]) -> Int64[Tensor, " n"]:
    """For each label, how many equal ones come before it.

    >>> turns(torch.tensor([7, 5, 7, 7, 5]))
    tensor([0, 0, 1, 2, 1])
    """
    order = torch.argsort(labels, stable=True)
    ordered = labels[order]
    starts = torch.searchsorted(ordered, ordered)
    turns = torch.empty_like(labels)
    turns[order] = torch.arange(len(labels)) - starts
    return turns
