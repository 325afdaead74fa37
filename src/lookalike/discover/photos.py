"""The photos to group: items of an index with their vectors, or photos that a model embeds first."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float32, Int64

from lookalike import data
from lookalike.data import Dataset
from lookalike.data.images.source import Files
from lookalike.data.string_column import StringColumn
from lookalike.errors import check
from lookalike.features import extract
from lookalike.geometry import Geometry
from lookalike.models import Architecture, Model
from lookalike.progress import Stage
from lookalike.search.adding.sources import listing
from lookalike.search.index import Index

BACKBONE, SIZE, SHORTER_SIDE = "efficientnet_lite0", 224, 256  # where no model is given


@dataclass(frozen=True)
class Photos:
    """Photos by name (a path, or the id of an item without one), with vectors and the labels that are known.

    ids: of the items of an index.
    model: the folder of the model that made the vectors; "" for an index, or features of ImageNet.
    fingerprint: of that model.
    """

    names: Sequence[str]
    vectors: Float32[np.ndarray, "n d"]
    labels: Sequence[str | None]
    geometry: Geometry
    ids: Sequence[str] = ()
    unreadable: Sequence[tuple[str, str]] = ()
    model: str = ""
    fingerprint: str = ""

    @property
    def known(self) -> Int64[np.ndarray, " n"]:
        """The number of each label, −1 where there is none."""
        number = {label: place for place, label in enumerate(self.classes)}
        return np.array([-1 if label is None else number[label] for label in self.labels], np.int64)

    @property
    def classes(self) -> Sequence[str]:
        return sorted({label for label in self.labels if label is not None})

    @property
    def given(self) -> dict[str, str]:
        """The labels that are known, by the names of their photos."""
        return {name: label for name, label in zip(self.names, self.labels, strict=True) if label is not None}

    def labelled(self, given: Mapping[str, str]) -> "Photos":
        """The same photos with these labels, and no others."""
        return replace(self, labels=[given.get(name) for name in self.names])

    def place_of(self, name: str) -> int:
        """The row of a photo, by its name or the path of its file."""
        places = {known: row for row, known in enumerate(self.names)}
        row = places.get(name, places.get(str(Path(name).expanduser().absolute())))
        check(row is not None, f"'{name}' is not among the {len(self.names):,} photos: give examples that are")
        return int(row or 0)


def photos(source: str, model: Path | None, stage: Stage, known: Path | None = None) -> Photos:
    """The items of an index; or photos, embedded by `model`, or by a network trained on ImageNet where there is none.

    Labels of an index count, folders of photos do not: the table `known` has the labels of some of them. `stage(name)`
    gives the progress of a part of the work.
    """
    if Index.exists(source):
        check(model is None, "an index has its own vectors: leave out --model")
        check(known is None, "the labels of an index are known already: leave out --known")
        return _of_index(Index.open(source))
    labels = {} if known is None else labels_of(known)
    found = _of_files(source, model, stage)
    missing = next(iter(labels.keys() - set(found.names)), None)
    check(missing is None, f"'{missing}' of '{known}' is not among the photos of '{source}', or cannot be read")
    return found.labelled(labels)


def state_of(source: str) -> str:
    """A digest that changes when photos of a source come, go, or get a label: files by path, items by their facts."""
    digest = blake2b(digest_size=16)
    if Index.exists(source):
        index = Index.open(source)
        digest.update(str(index.identity.generation).encode())
        for item in index.store.listed():
            facts = (item.id, item.path, item.label, item.stamp and item.stamp.digest)
            digest.update(json.dumps(facts).encode())
    else:
        for entry in listing(source).entries:
            digest.update(json.dumps(str(entry.item.path)).encode())
    return digest.hexdigest()


def geometry_of(source: str, model: Path | None) -> Geometry:
    """How vectors of a source are compared, before there are any."""
    if Index.exists(source):
        return Index.open(source).identity.geometry
    return "sphere" if model is None else Model.load(model).geometry


def fingerprint_of(model: Path | None) -> str:
    return "" if model is None else Model.load(model).fingerprint


def has_labels(source: str) -> bool:
    """Whether it is a table with labels, which count as known only where the table is given with --known."""
    table = Path(source).expanduser().is_file() and not Index.exists(source)
    return table and any(entry.item.label for entry in listing(source).entries)


def labels_of(known: Path) -> dict[str, str]:
    """The labels of the photos in a table that a person gave; those that a machine found do not count as known."""
    table = data.table(known)
    images = table.images
    assert isinstance(images, Files)
    check(table.sets is None, f"'{known}' has a column labels, of which there may be several: give one, label")
    rows = (~(table.of_origin("found") | table.undecided())).nonzero().flatten().tolist()
    check(bool(rows), f"'{known}' has no label that a person gave: leave out --known")
    return {str(images.path(row).absolute()): table.label_names[int(table.labels[row])] for row in rows}


def _of_index(index: Index) -> Photos:
    ids: list[str] = []
    names: list[str] = []
    labels: list[str | None] = []
    blocks = [np.empty((0, index.identity.dim), np.float32)]
    for items, vectors in index.store.scan():
        ids += [item.id for item in items]
        names += [item.path or item.id for item in items]
        labels += [item.label or None for item in items]
        blocks.append(vectors)
    check(bool(names), f"there is nothing in '{index.shown}' yet: add photos with lookalike index")
    check(None in labels, f"every item of '{index.shown}' has a label: add photos without one, such as a flat folder")
    return Photos(names, np.concatenate(blocks), labels, index.identity.geometry, ids)


def _of_files(source: str, model: Path | None, stage: Stage) -> Photos:
    listed = listing(source)
    paths = [entry.item.path for entry in listed.entries if entry.item.path is not None]
    check(bool(paths), f"'{source}' names no files: give a folder of photos, a table with their paths, or an index")
    images = Files(Path("/"), StringColumn.of(str(path) for path in paths))
    found = Dataset("photos", images, torch.zeros(len(paths), dtype=torch.int64), ("",))
    readable = data.readable(found, progress=stage("reading photos"))
    lost = [*listed.skipped, *((problem.path, problem.detail) for problem in readable.problems)]
    check(len(readable) > 0, f"none of {len(paths):,} photos in '{source}' can be read")
    loaded = imagenet_features() if model is None else Model.load(model)
    vectors = extract(loaded, readable, backend="auto", progress=stage("embedding photos")).numpy()
    names = [str(readable.images.path(row)) for row in range(len(readable))]  # type: ignore[attr-defined]
    nothing: list[str | None] = [None] * len(names)
    if model is None:  # features that nobody has trained for this have a direction in common
        unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(np.float32).tiny)
        return Photos(names, np.asarray(unit - unit.mean(0), np.float32), nothing, "sphere", (), lost)
    return Photos(names, vectors, nothing, loaded.geometry, (), lost, str(model), loaded.fingerprint)


def imagenet_features() -> Model:
    """A network that was trained on ImageNet, without a head."""
    model = Model.create(Architecture(BACKBONE, batch_norm="frozen_statistics"), "pretrained")
    return replace(model, preprocessing=model.preprocessing.sized(SIZE, SHORTER_SIDE)).headless()
