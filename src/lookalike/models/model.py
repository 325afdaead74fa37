"""A trained embedder with everything needed to use it: encode images, save to a folder, load again.

Paths, arrays and PIL images go in, embeddings in the model's own geometry come out. The caller may choose how files are
decoded (`decode`); by default Pillow reads them and turns them upright as their EXIF says.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from lookalike.errors import NotFiniteError, UserError, check
from lookalike.geometry import Geometry, check_geometry
from lookalike.models import model_folder, model_hub, untrusted
from lookalike.models.architecture import Architecture
from lookalike.models.backbones.weights import WEIGHTS
from lookalike.models.backends import Backend, BackendName, Normalised, choose
from lookalike.models.device import checked_device
from lookalike.models.embedder import Embedder
from lookalike.models.encoding import Decode, check_many, computed, evaluating, in_batches, read_image
from lookalike.models.fingerprint import fingerprint
from lookalike.models.low_rank import merged_state
from lookalike.models.model_folder import Description
from lookalike.models.preprocess import Preprocessing
from lookalike.models.readout import Readout
from lookalike.progress import Progress

SMALL_BATCH, LARGE_BATCH = 16, 128  # for large activations, a CPU spends more on fresh memory than on arithmetic


@dataclass
class Model:
    """An embedder, how pixels reach it, the geometry its embeddings are compared in, and its origin.

    embedder: the network.
    preprocessing: how pixels reach it.
    architecture: what it was built from; None: a network of your own, passed again when loading.
    geometry: where its embeddings are compared: "sphere", "ball" or "none".
    classes: the names of the classes it was trained on.
    metrics: what it is worth, by name.
    recipe: how it was trained, as TOML.

    >>> import numpy as np
    >>> model = Model.create(Architecture("conv4", {"channels": 1}, dim=16))
    >>> model.encode(np.zeros((5, 28, 28), dtype=np.uint8)).shape
    torch.Size([5, 16])
    """

    embedder: nn.Module
    preprocessing: Preprocessing
    architecture: Architecture | None = None
    geometry: Geometry = "sphere"
    classes: Sequence[str] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    recipe: str | None = None

    def __post_init__(self) -> None:
        check_geometry(self.geometry)

    @staticmethod
    def create(
        architecture: Architecture,
        weights: str | Path | None = None,
        seed: int = 0,
        preprocessing: Preprocessing | None = None,
    ) -> "Model":
        """A model of this `architecture`, random from `seed` or with published `weights`.

        `preprocessing`: that of the backbone, unless you give another.
        """
        embedder = architecture.build(weights, seed).eval()
        return Model(embedder, preprocessing or embedder.backbone.preprocessing, architecture)

    def with_readout(
        self, readout: Readout, mean: Float[Tensor, " width"], directions: Float[Tensor, "k width"] | None = None
    ) -> "Model":
        """A copy whose embeddings are the centred features, or head and centred features side by side.

        `mean`: the mean of the normalised features of the train images (`embedder.features`); `directions`: their
        principal axes, where `readout.components` says how many.
        """
        embedder, architecture = deepcopy(self.embedder), self.architecture
        if not isinstance(embedder, Embedder) or architecture is None:
            raise UserError("only a network built by name has a readout: this one is your own")
        if readout.kind == "features":
            embedder.head = nn.Sequential()
            architecture = replace(architecture, dim=None, layer_norm=False, hidden=None)
        embedder.set_readout(readout, architecture.dim)
        if embedder.centred is not None:
            embedder.centred.to(self.device).fill(mean, directions)
        return replace(self, embedder=embedder, architecture=replace(architecture, readout=readout), metrics={})

    def headless(self, pooling: str | None = None) -> "Model":
        """A copy that ends with the pooled features. Models that differ in their heads alone have equal copies.

        `pooling`: another than the model's own.
        """
        embedder, head = deepcopy(self.embedder), self.architecture
        if not isinstance(embedder, Embedder):
            raise UserError("only a network with a backbone and a head has features to read: this one is your own")
        embedder.head = nn.Sequential()
        own = None if head is None else head.pooling
        if pooling not in (None, own):  # its own may have learnt
            embedder.set_pooling(str(pooling))
        embedder.set_readout(Readout(), None)
        bare = None
        if head is not None:
            bare = Architecture(head.backbone, head.settings, dim=None, pooling=pooling or head.pooling)
        return Model(embedder, self.preprocessing, bare, geometry="none")

    @property
    def device(self) -> torch.device:
        return next((parameter.device for parameter in self.embedder.parameters()), torch.device("cpu"))

    def encode(
        self,
        images: Any,
        batch_size: int | None = None,
        progress: Progress | None = None,
        decode: Decode | None = None,
        backend: BackendName | Backend = "torch",
    ) -> Float[Tensor, "n d"]:
        """Embeddings, one row per image, on the CPU.

        `images`: a sequence of paths, PIL images, arrays or tensors, or one array (n × rows × columns × channels) or
        tensor (n × channels × rows × columns). uint8 ranges from 0 to 255, floats from 0 to 1. Threads decode the
        images of a list while the network computes. `batch_size`: how many go through the network at a
        time. `decode`: reads a file, in the place of Pillow. `backend`: torch, onnx or auto (see `models.backends`).
        """
        check_many(images)
        inputs = in_batches(images, self.batch_size(batch_size), self.preprocessing, decode or read_image)
        return self.encode_inputs(inputs, len(images), progress, backend)

    def batch_size(self, size: int | None = None) -> int:
        """How many images go through the network at a time: `size`, or what suits the device."""
        size = (SMALL_BATCH if self.device.type == "cpu" else LARGE_BATCH) if size is None else size
        check(size > 0, f"batch_size must be positive, not {size}")
        return size

    def encode_inputs(
        self,
        batches: Iterable[Float[Tensor, "_ c h w"]],
        total: int = 0,
        progress: Progress | None = None,
        backend: BackendName | Backend = "torch",
    ) -> Float[Tensor, "n d"]:
        """Embeddings of images that have been prepared, in `batches`; `backend` as in `encode`.

        `total`: how many they are, for `progress`.
        """
        rows: list[Tensor] = []
        done = 0
        with evaluating(self.embedder):
            run = (backend if isinstance(backend, Backend) else self.backend(backend)).run
            for inputs in batches:
                rows.append(computed(run, inputs))
                if not bool(rows[-1].isfinite().all()):
                    raise NotFiniteError(
                        "the embeddings are not numbers: the weights are damaged, or training diverged"
                    )
                done += len(inputs)
                if progress is not None:
                    progress(done, total)
        return torch.cat(rows)

    def backend(self, name: BackendName) -> Backend:
        """What computes this model's embeddings: the backend called `name`."""
        how = self.preprocessing
        with evaluating(self.embedder):
            key = None if self.architecture is None or name == "torch" else self._graph_fingerprint
            network = Normalised(self.embedder, self.geometry).eval()
            return choose(name, network, (how.channels, how.crop, how.crop), key)

    @property
    def fingerprint(self) -> str:
        """A digest of weights, architecture, preprocessing and geometry: what tells this model from any other."""
        return fingerprint(
            self._complete_architecture(), self.preprocessing, self.geometry, merged_state(self.embedder)
        )

    @property
    def _graph_fingerprint(self) -> str:
        """The same for models that differ only in how images become their inputs, and so share a graph."""
        return fingerprint(self._complete_architecture(), Preprocessing(), self.geometry, merged_state(self.embedder))

    def save(self, folder: str | Path) -> None:
        """Write the model to `folder`, whole or not at all; an existing model is replaced."""
        description = Description(
            self._complete_architecture(),
            self.preprocessing,
            self.geometry,
            getattr(self.embedder, "dim", None),
            tuple(self.classes),
            dict(self.metrics),
            self.fingerprint,
        )
        model_folder.write(Path(folder), description, self.embedder, self.recipe)

    def push_to_hub(self, repository: str, private: bool = False) -> str:
        """Upload the model to the `repository` OWNER/NAME of the Hugging Face Hub; returns the address of its page.

        `private`: a new repository is for you alone.
        """
        with TemporaryDirectory() as place:
            self.save(Path(place) / "model")
            return model_hub.push(Path(place) / "model", repository, private)

    @staticmethod
    def from_pretrained(repository: str, device: str = "cpu") -> "Model":
        """The model in the `repository` OWNER/NAME of the Hugging Face Hub, or in a local folder, on `device`."""
        return Model.load(repository if Path(repository).is_dir() else f"{model_hub.PREFIX}{repository}", device=device)

    def _complete_architecture(self) -> Architecture | None:
        """The architecture with what its backbone adds, so that it can be built without the backbone's source."""
        if self.architecture is None:
            return None
        added = getattr(getattr(self.embedder, "backbone", None), "rebuild", {})
        return replace(self.architecture, settings={**added, **self.architecture.settings})

    @staticmethod
    def load(
        folder: str | Path, embedder: nn.Module | None = None, device: str = "cpu", trusted: bool = False
    ) -> "Model":
        """The model in `folder`, on `device`. It may come from anywhere: nothing in it is run.

        `folder`: that of a model, or hf:OWNER/NAME for one of the Hugging Face Hub. `embedder`: the network to fill,
        for one that is not built by name. `trusted`: the folder is yours, and its backbone may name a repository, a
        path or any option of timm and transformers.
        """
        folder = model_hub.folder(folder)
        description, recipe = model_folder.read(folder)
        architecture = description.architecture
        if embedder is None:
            if architecture is None:
                raise UserError(
                    f"the model in {folder} is a network of your own: pass it to Model.load(folder, embedder=...)"
                )
            embedder = untrusted.build(architecture, folder / WEIGHTS, trusted)
        model_folder.fill(folder, embedder)
        model = Model(
            embedder.eval(),
            description.preprocessing,
            architecture,
            description.geometry,
            description.classes,
            description.metrics,
            recipe,
        )
        natural = getattr(getattr(embedder, "backbone", None), "preprocessing", model.preprocessing)
        fits = natural.channels == model.preprocessing.channels
        check(
            fits, f"{folder} is damaged: its network takes {natural.channels} channels, not {model.preprocessing.order}"
        )
        dim = getattr(embedder, "dim", description.dim)
        check(
            description.dim == dim, f"{folder} is damaged: its embeddings have {dim}, not {description.dim} dimensions"
        )
        check(
            description.fingerprint in (None, model.fingerprint),
            f"the model in {folder} is damaged: its files changed after it was saved",
        )
        model.embedder.to(checked_device(device))
        return model
