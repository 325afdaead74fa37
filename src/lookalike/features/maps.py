"""The maps of a frozen beginning of a network, for the centre and further views of every image, kept on disk.

They take the place of images in training: a step then costs only the stages that learn. One file per network, stage,
list of views and data set, whole or not there; its digest is compared when it is opened.
"""

import json
import math
from collections.abc import Sequence
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lookalike.cache import loaded
from lookalike.data import Dataset
from lookalike.data.images.digests import content_digests
from lookalike.features.embedding import encode_rows
from lookalike.features.views import CENTRE, View
from lookalike.files import read_json
from lookalike.geometry import normalise
from lookalike.models import Embedder, Model
from lookalike.models.backends import Backend, BackendName, Normalised, choose
from lookalike.models.cut import Beginning, Rest
from lookalike.models.encoding import evaluating
from lookalike.progress import Progress

VERSION = 1
FILE, FACTS = "maps.npy", "facts.json"
BLOCK = 256  # images
AT_ONCE = 16  # images: more do not stay in the processor's cache


class Maps(NamedTuple):
    """Maps of images, flattened.

    rows: the values of the map of every image in every view.
    shape: that of one map.
    """

    rows: Float[Tensor, "n views values"]
    shape: tuple[int, ...]


def feature_maps(
    model: Model,
    dataset: Dataset,
    stage: str,
    views: Sequence[View] = (CENTRE,),
    *,
    half: bool = True,
    backend: BackendName = "auto",
    progress: Progress | None = None,
) -> Maps:
    """The maps after `stage` of all images, seen through each of the `views`, from the cache or computed now.

    `half`: kept in half precision.
    """
    assert isinstance(model.embedder, Embedder)
    digests = [digest.tobytes() for digest in content_digests(dataset.images)]
    own = f"{model.headless().fingerprint} {stage}"
    beginning = Beginning(model.embedder, stage)
    how = model.preprocessing
    with evaluating(model.embedder), torch.no_grad():
        network = Normalised(beginning, "none").eval()
        computes = choose(backend, network, (how.channels, how.crop, how.crop), blake2b(own.encode()).hexdigest()[:32])
        shape = _shape(model, beginning)
    words = " ".join(["", *(view.description() for view in views)])
    summary = blake2b(f"{VERSION} {own} {computes.name} {half}{words}".encode(), digest_size=16)
    summary.update(b"".join(digests))

    def write(folder: Path) -> None:
        work = _MapExtraction(model, dataset, views, computes, digests, progress)
        size = (len(dataset), len(views), int(np.prod(shape)))
        file = np.lib.format.open_memmap(folder / FILE, "w+", np.float16 if half else np.float32, size)
        for place in range(len(views)):
            for start in range(0, len(dataset), BLOCK):
                stop = min(len(dataset), start + BLOCK)
                file[start:stop, place] = work.compute(place, start, stop)
        file.flush()
        (folder / FACTS).write_text(json.dumps({"digest": _digest(folder)}), encoding="utf-8")

    return Maps(torch.from_numpy(loaded("maps", summary.hexdigest(), write, _read)), shape)


def _shape(model: Model, beginning: Beginning) -> tuple[int, ...]:
    how = model.preprocessing
    return tuple(beginning.maps(torch.zeros(1, how.channels, how.crop, how.crop, device=model.device)).shape[1:])


@torch.no_grad()
def map_bytes(model: Model, stage: str) -> int:
    """What the map of one view of an image takes on disk, in half precision."""
    assert isinstance(model.embedder, Embedder)
    with evaluating(model.embedder):
        return 2 * math.prod(_shape(model, Beginning(model.embedder, stage)))


@torch.no_grad()
def embed_maps(model: Model, maps: Maps, stage: str) -> Float[Tensor, "n d"]:
    """The embeddings of images, from the `maps` of their first view after `stage`: only what follows is computed."""
    assert isinstance(model.embedder, Embedder)
    rest = Rest(model.embedder, stage, maps.shape)
    with evaluating(model.embedder):
        parts = [rest(part.to(model.device).float()).cpu() for part in torch.split(maps.rows[:, 0], AT_ONCE)]
    return normalise(torch.cat(parts), model.geometry)


def _digest(folder: Path) -> str:
    with (folder / FILE).open("rb") as file:
        return file_digest(file, "blake2b").hexdigest()


def _read(folder: Path) -> np.ndarray:
    if read_json(folder / FACTS)["digest"] != _digest(folder):
        raise ValueError(f"{folder / FILE} is damaged")
    values: np.ndarray = np.load(folder / FILE, mmap_mode="c", allow_pickle=False)
    return values


class _MapExtraction(NamedTuple):
    model: Model
    dataset: Dataset
    views: Sequence[View]
    backend: Backend
    digests: Sequence[bytes]
    progress: Progress | None

    def compute(self, place: int, start: int, stop: int) -> np.ndarray:
        """The maps of some images in one view."""

        def inputs(row: int) -> Tensor:
            picture = self.dataset.images.open(start + row)
            return self.views[place].inputs(picture, self.digests[start + row], self.model.preprocessing)

        def tell(done: int, _: int) -> None:
            if self.progress is not None:
                self.progress(place * len(self.dataset) + start + done, len(self.views) * len(self.dataset))

        values: np.ndarray = encode_rows(self.model, inputs, stop - start, self.backend, tell).numpy()
        return values
