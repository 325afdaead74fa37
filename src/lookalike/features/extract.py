"""The vectors of a data set by a frozen network, computed once and kept on disk.

They are found by the model's fingerprint, the view and the content of the images: runs, cells of a study and workers
share them, a renamed or moved photo keeps its vector, and only new photos are computed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from lookalike.cache import cache_folder, remembered
from lookalike.data import Dataset
from lookalike.data.images.digests import content_digests
from lookalike.errors import UserError
from lookalike.features.embedding import encode_rows
from lookalike.features.store import BUCKETS, FeatureStore, Vectors
from lookalike.features.views import CENTRE, View
from lookalike.image_files import UnreadableError
from lookalike.models import Embedder, Model
from lookalike.models.backends import Backend, BackendName
from lookalike.processes import Ranks
from lookalike.progress import Progress

VERSION = 1
BOTH, FIRST, SECOND = "cls_avg", "cls", "avg"  # poolings, of which one has the columns of two
IN_MEMORY = 2**29  # bytes of the vectors that the runs of a sweep share without reading them again


def extract(
    model: Model,
    dataset: Dataset,
    view: View = CENTRE,
    *,
    backend: BackendName = "torch",
    progress: Progress | None = None,
) -> Float[Tensor, "n d"]:
    """The model's embeddings of all images, seen through `view`, from the cache as far as they are there.

    A network of the user's own has no name, so nothing is kept.
    """
    columns, model = _columns(model)
    digests = [digest.tobytes() for digest in content_digests(dataset.images)]
    work = _Work(model, dataset, view, backend_of(model, backend), digests, progress)
    if model.architecture is None:
        work.total = len(digests)
        return torch.from_numpy(work.compute(range(len(digests))))[:, columns]
    store = FeatureStore(cache_folder() / "features" / _key(model, view, work.backend))
    known: dict[bytes, Vectors] = remembered("vectors", str(store.folder), dict)
    vectors = {digest: known[digest] for digest in digests if digest in known}
    vectors |= store.read([digest for digest in digests if digest not in known])
    missing = {digest: row for row, digest in enumerate(digests) if digest not in vectors}
    work.total = len(missing)
    ranks = Ranks.current()
    first = ranks.rank * BUCKETS // ranks.count  # the processes of a run begin at different places
    vectors |= store.add(list(missing), lambda block: work.compute([missing[digest] for digest in block]), first)
    if work.done < work.total:
        work.tell(work.total)  # other processes computed the rest
    if sum(vector.nbytes for part in (known, vectors) for vector in part.values()) <= IN_MEMORY:
        known.update(vectors)
    return torch.from_numpy(np.stack([vectors[digest] for digest in digests]))[:, columns]


def _columns(model: Model) -> tuple[slice, Model]:
    """Class token and mean of the patches are computed and kept together: the columns of one, and the model of both."""
    architecture, embedder = model.architecture, model.embedder
    if architecture is None or not isinstance(embedder, Embedder) or architecture.dim is not None:
        return slice(None), model
    tokens, readout = getattr(embedder.backbone, "prefix_tokens", 0), architecture.readout
    if not tokens or model.geometry != "none" or readout.kind != "head" or architecture.pooling not in (FIRST, SECOND):
        return slice(None), model
    width = embedder.width
    return slice(0, width) if architecture.pooling == FIRST else slice(width, None), model.headless(BOTH)


def backend_of(model: Model, name: BackendName) -> Backend:
    """The backend called `name`, for a network that does not change. The runs of a sweep share its ONNX session; torch
    computes with the network itself, whose mode may change."""
    if name == "torch" or model.architecture is None:
        return model.backend(name)
    sessions: dict[str, Backend] = remembered("sessions", name, dict)
    key = model.fingerprint
    backend = sessions.get(key) or model.backend(name)
    if backend.name == "onnx":
        sessions[key] = backend
    return backend


def _key(model: Model, view: View, backend: Backend) -> str:
    facts = f"{VERSION} {model.fingerprint} {backend.name} {view.description()}"
    return blake2b(facts.encode(), digest_size=16).hexdigest()


@dataclass
class _Work:
    """Images through the network, some rows at a time."""

    model: Model
    dataset: Dataset
    view: View
    backend: Backend
    digests: Sequence[bytes]
    progress: Progress | None
    total: int = 0
    done: int = 0

    def compute(self, rows: Sequence[int]) -> Vectors:
        """The vectors of some rows."""
        before = self.done

        def progress(done: int, _: int) -> None:
            self.done = before + done
            self.tell(self.done)

        vectors = encode_rows(self.model, lambda place: self._inputs(rows[place]), len(rows), self.backend, progress)
        return vectors.numpy()

    def _inputs(self, row: int) -> Tensor:
        images = self.dataset.images
        try:
            return self.view.inputs(images.open(row), self.digests[row], self.model.preprocessing)
        except UnreadableError as error:
            raise UserError(f"cannot read {images.name(row)} ({error}): run lookalike audit on the data") from error

    def tell(self, done: int) -> None:
        if self.progress is not None:
            self.progress(done, self.total)
