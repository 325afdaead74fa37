"""A data set embedded shard by shard, by all who work on it: one process, several, or the nodes of a cluster."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lookalike.data import Dataset
from lookalike.data.reach import absolute, check_reach
from lookalike.data.string_column import StringColumn
from lookalike.errors import UserError, check
from lookalike.features.embedding import encode_rows
from lookalike.features.shard_images import Arrays, Problems, ShardImages
from lookalike.features.shards import Shards, listed, planned
from lookalike.files import remove_leftovers, whole_file
from lookalike.models import Model
from lookalike.models.backends import Backend, BackendName
from lookalike.models.device import checked_device
from lookalike.models.preprocess import prepare
from lookalike.progress import Progress
from lookalike.workers import Part, Workers


def embed_shards(
    model: Model,
    dataset: Dataset,
    folder: str | Path,
    shards: int | None = None,
    *,
    workers: Workers = Workers(),  # noqa: B008  # it is frozen
    part: Part = Part(),  # noqa: B008
    device: str | None = None,
    backend: BackendName | Backend = "auto",
    progress: Progress | None = None,
    unreadable: Callable[[Problems], None] = lambda _: None,
) -> Shards:
    """Make the shards that `folder` lacks, or those of a `part`; what is there stays, so the same call continues.

    The first call fixes the list of images and the number of `shards` (None: as many as the folder has, else one for
    every 1,000 images). `workers` see the images and the folder under the same names as this process; the model is sent
    to them and works on their `device` (None: the model's own). `unreadable` hears of what could not be read.
    """
    check(len(dataset) > 0, f"there are no images in {dataset.name}: give others")
    root, names = listed(dataset.images)
    result = Shards.begin(Path(folder).absolute(), planned(dataset, root, names, model.fingerprint, shards), shards)
    computed_by = backend if isinstance(backend, Backend) else model.backend(backend)
    # every process chooses by the name of the backend: only one and the same gives the same bits
    made_by = computed_by.name if workers.elsewhere else computed_by
    work = ShardWork(result, model, absolute(dataset), names, made_by, device or str(model.device))
    finished = result.finished()
    total, done = result.plan.images, result.images(finished)
    missing = [number for number in part.chosen(range(result.plan.shards)) if number not in finished]
    if progress is not None:
        progress(done, total)
    for number, problems in zip(missing, workers.map(work, missing), strict=True):
        unreadable(problems)
        done += len(result.rows(number))
        if progress is not None:
            progress(done, total)
    if len(result.finished()) == result.plan.shards:  # nobody is at work any more
        remove_leftovers(result.folder)
    return result


@dataclass(frozen=True)
class ShardWork:
    """What a process needs to make any of the shards; called, it is ready for their numbers."""

    shards: Shards
    model: Model
    dataset: Dataset
    names: StringColumn
    made_by: str | Backend
    device: str

    def __call__(self) -> Callable[[int], Problems]:
        self.model.embedder.to(checked_device(self.device))
        backend = self.made_by if isinstance(self.made_by, Backend) else self.model.backend(self.made_by)  # type: ignore[arg-type]
        return lambda number: self._make(number, backend)

    def _make(self, number: int, backend: Backend) -> Problems:
        """Embed and write one shard; what could not be read of it."""
        if self.shards.path(number).is_file():
            return []  # by somebody else, meanwhile
        rows, how = self.shards.rows(number), self.model.preprocessing
        images = ShardImages(self.dataset.subset(torch.arange(rows.start, rows.stop)), self.names.take(list(rows)))
        grey = torch.zeros(1, how.channels, how.crop, how.crop)  # stands for what cannot be read

        def inputs(place: int) -> Tensor:
            pixels = images.pixels(place)
            return grey if pixels is None else prepare([pixels], how)

        vectors = encode_rows(self.model, inputs, len(rows), backend).numpy()
        if images.missing:
            check_reach(self.dataset)
        self._write(number, {"embeddings": vectors[images.kept], **images.columns(self.shards.plan.root)}, images)
        return images.problems()

    def _write(self, number: int, arrays: Arrays, images: ShardImages) -> None:
        plan, path = self.shards.plan, self.shards.path(number)
        facts = {"root": plan.root or plan.data, "fingerprint": plan.fingerprint, "list": plan.digest}
        try:
            with whole_file(path) as file:
                np.savez_compressed(file, **arrays, **facts, unreadable=json.dumps(images.problems()))  # type: ignore[arg-type]
        except UserError:
            if not path.is_file():  # else somebody else has written it, and tidied up
                raise
