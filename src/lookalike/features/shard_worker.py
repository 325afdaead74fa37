"""One of any number of workers that embed a data set together, on any machines that see the folder of shards.

It takes one free shard after the other until all are there, and waits for those that others are at work on: whatever
happens to them, the last one leaves nothing undone.
"""

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lookalike.data import Dataset
from lookalike.data.images.source import Files
from lookalike.data.string_column import StringColumn
from lookalike.errors import UserError, check
from lookalike.features.claims import LEASE, Claims, read
from lookalike.features.embedding import encode_rows
from lookalike.features.shard_images import Arrays, Problems, ShardImages
from lookalike.features.shards import Shards, claim_name, listed, planned
from lookalike.files import remove_leftovers, whole_file
from lookalike.models import Model
from lookalike.models.backends import Backend, BackendName
from lookalike.models.preprocess import prepare
from lookalike.progress import Progress

PAUSE = 1.0  # seconds between two looks at what others do
SAMPLE = 20  # files of the whole list: if none of them is there, the data are not
Stop = Callable[[], bool]


def embed_shards(
    model: Model,
    dataset: Dataset,
    folder: str | Path,
    shards: int | None = None,
    *,
    backend: BackendName | Backend = "auto",
    progress: Progress | None = None,
    stop: Stop = lambda: False,
    unreadable: Callable[[Problems], None] = lambda _: None,
    lease: float = LEASE,
) -> Shards:
    """Work on the shards in `folder` until all are there, or `stop` says so.

    The first worker fixes the list of images and the number of `shards`; others join it and may leave it out.
    `unreadable` hears of the images that this worker could not read, shard by shard. A worker without a sign of life
    for `lease` seconds loses its shard to the others: give more than a batch of images takes.
    """
    check(len(dataset) > 0, f"there are no images in {dataset.name}: give others")
    check(lease > 0, f"a lease lasts some seconds, not {lease}")
    root, names = listed(dataset.images)
    begun = Shards.begin(Path(folder), planned(dataset, root, names, model.fingerprint, shards), shards)
    computed_by = backend if isinstance(backend, Backend) else model.backend(backend)
    worker = _Worker(begun, model, dataset, names, computed_by, Claims(begun.claims, lease), progress, stop)
    worker.work(unreadable)
    return begun


class _StoppedError(Exception):
    """The worker was told to stop."""


@dataclass
class _Worker:
    shards: Shards
    model: Model
    dataset: Dataset
    names: StringColumn
    backend: Backend
    claims: Claims
    progress: Progress | None
    stop: Stop

    def work(self, unreadable: Callable[[Problems], None]) -> None:
        try:
            while len(finished := self.shards.finished()) < self.shards.plan.shards:
                self._tell(done := self.shards.images(finished))
                number = self._next(finished)
                if number is None:
                    time.sleep(min(PAUSE, self.claims.lease / 4))
                    continue
                try:
                    if not self.shards.path(number).is_file():
                        unreadable(self._make(number, done))
                finally:
                    self.claims.release(claim_name(number))
            self._tell(self.shards.plan.images)
        except _StoppedError:
            return
        _tidy(self.shards)

    def _tell(self, done: int) -> None:
        """How far all workers together are, as far as this one knows."""
        if self.stop():
            raise _StoppedError
        if self.progress is not None:
            self.progress(done, self.shards.plan.images)

    def _next(self, finished: set[int]) -> int | None:
        """A shard that is ours now: a free one, else one whose owner is gone."""
        total = self.shards.plan.shards
        first = int(str(self.claims.owner["token"]), 16) % total  # workers begin at different places
        undone = [number for number in ((first + step) % total for step in range(total)) if number not in finished]
        claimed = set(os.listdir(self.shards.claims))
        free = [number for number in undone if claim_name(number) not in claimed]
        # every claim is looked at every time: from the first look on, its lease runs
        lost = [number for number in undone if claim_name(number) in claimed and self._lost(claim_name(number))]
        return next((number for number in (*free, *lost) if self.claims.take(claim_name(number))), None)

    def _lost(self, name: str) -> bool:
        content = read(self.shards.claims, name)
        return content is None or self.claims.abandoned(name, content)

    def _make(self, number: int, before: int) -> Problems:
        """Embed and write one shard; what could not be read of it."""
        rows, how = self.shards.rows(number), self.model.preprocessing
        images = ShardImages(self.dataset.subset(torch.arange(rows.start, rows.stop)), self.names.take(list(rows)))
        grey = torch.zeros(1, how.channels, how.crop, how.crop)  # stands for what cannot be read

        def inputs(place: int) -> Tensor:
            pixels = images.pixels(place)
            return grey if pixels is None else prepare([pixels], how)

        def progress(done: int, _: int) -> None:
            self.claims.renew(claim_name(number), done)
            self._tell(before + done)

        vectors = encode_rows(self.model, inputs, len(rows), self.backend, progress).numpy()
        if images.missing:
            self._check_reach()
        self._write(number, {"embeddings": vectors[images.kept], **images.columns(self.shards.plan.root)}, images)
        return images.problems()

    def _check_reach(self) -> None:
        """Some files may be missing; where all are, this machine does not see the data."""
        images = self.dataset.images
        if isinstance(images, Files):
            sample = [images.path(step * len(images) // SAMPLE) for step in range(SAMPLE)]
            reached = any(map(os.path.exists, sample))
            check(reached, f"'{sample[0]}' is gone, and so are all others: is {self.dataset.name} within reach?")

    def _write(self, number: int, arrays: Arrays, images: ShardImages) -> None:
        plan, path = self.shards.plan, self.shards.path(number)
        facts = {"root": plan.root or plan.data, "fingerprint": plan.fingerprint, "list": plan.digest}
        try:
            with whole_file(path) as file:
                np.savez_compressed(file, **arrays, **facts, unreadable=json.dumps(images.problems()))  # type: ignore[arg-type]
        except UserError:
            if not path.is_file():  # else another worker has written it, and tidied up
                raise


def _tidy(shards: Shards) -> None:
    """All shards are there: what killed workers left behind is not needed any more."""
    remove_leftovers(shards.folder)
    for name in map(claim_name, range(shards.plan.shards)):
        (shards.claims / name).unlink(missing_ok=True)
