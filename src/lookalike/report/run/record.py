"""What the report knows of a run. Only `test.npz` must be there; what else is missing is missing on the page."""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lookalike.errors import UserError, check
from lookalike.geometry import Geometry, check_geometry
from lookalike.label_sets import LabelSets
from lookalike.runs import RunFolder
from lookalike.runs.embeddings import Arrays, label_sets
from lookalike.runs.finished import load_test, read_json
from lookalike.runs.log import Log, read_log


@dataclass(frozen=True)
class UnseenImages:
    """The embeddings of images of unseen classes. Rows count queries first, then the gallery if there is one."""

    embeddings: NDArray[np.float32]
    labels: list[str]
    categories: list[str] | None
    paths: list[str]  # of all rows, or empty
    gallery: NDArray[np.float32] | None
    gallery_labels: list[str] | None
    geometry: Geometry
    sets: LabelSets | None = None  # of all rows, where images have several labels, or none

    def alike(self, query: int, row: int) -> bool:
        """Whether two rows are of one class, or share a label."""
        if self.sets is None:
            return self.all_labels[query] == self.all_labels[row]
        return bool(self.sets[[query]].shared(self.sets[[row]]))

    @property
    def gallery_size(self) -> int:
        return len(self.embeddings if self.gallery is None else self.gallery)

    @property
    def first_of_gallery(self) -> int:
        """The row of the first gallery item: 0 where queries are their own gallery."""
        return 0 if self.gallery is None else len(self.embeddings)

    @cached_property
    def all_vectors(self) -> NDArray[np.float32]:
        return self.embeddings if self.gallery is None else np.concatenate((self.embeddings, self.gallery))

    @cached_property
    def all_labels(self) -> list[str]:
        return self.labels + (self.gallery_labels or [])

    def path(self, row: int) -> str:
        """The file of a row, or nothing where it has none."""
        return self.paths[row] if self.paths else ""


@dataclass(frozen=True)
class RunRecord:
    folder: RunFolder
    test: UnseenImages
    recipe: str
    log: Log
    audit: dict[str, Any] | None
    result: dict[str, Any]  # result.json

    def part(self, name: str) -> dict[str, Any]:
        """A table of result.json, empty where it has none."""
        return dict(self.result.get(name) or {})


def read(path: Path) -> RunRecord:
    check(path.is_dir(), f"'{path}' is not a folder: give the folder of a run")
    folder = RunFolder(path)
    arrays = load_test(path)
    if arrays is None:
        name = folder.test.name
        raise UserError(f"'{path}' holds no {name}, the embeddings of the test images: is the run complete?")
    result = read_json(folder.result, {})
    return RunRecord(
        folder=folder,
        test=_test(arrays, (result.get("model") or {}).get("geometry") or "sphere"),
        recipe=folder.recipe.read_text(encoding="utf-8", errors="replace") if folder.recipe.is_file() else "",
        log=read_log(folder.log),
        audit=read_json(folder.audit),
        result=result,
    )


def _test(arrays: Arrays, geometry: Any) -> UnseenImages:
    gallery = arrays.get("gallery_embeddings")
    labels, gallery_labels = _words(arrays, "labels"), _words(arrays, "gallery_labels")
    paths = _words(arrays, "paths") + _words(arrays, "gallery_paths")
    return UnseenImages(
        embeddings=arrays["embeddings"],
        labels=labels,
        categories=_words(arrays, "categories") or None,
        paths=paths if len(paths) == len(labels) + len(gallery_labels) else [],
        gallery=gallery,
        gallery_labels=None if gallery is None else gallery_labels,
        geometry=check_geometry(geometry),
        sets=_sets(arrays),
    )


def _sets(arrays: Arrays) -> LabelSets | None:
    parts = [part for part in label_sets(arrays) if part is not None]
    return replace(parts[0], numbers=torch.cat([part.numbers for part in parts])) if parts else None


def _words(arrays: Arrays, name: str) -> list[str]:
    return [str(value) for value in arrays[name].tolist()] if name in arrays else []
