"""What the report knows of a run. Only `test.npz` must be there; what else is missing is missing on the page."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import UserError, check
from lookalike.geometry import Geometry, check_geometry
from lookalike.runs.finished import read_json


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
    folder: Path
    test: UnseenImages
    recipe: str
    log: list[dict[str, Any]]
    audit: dict[str, Any] | None
    result: dict[str, Any]  # result.json

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.log if event.get("event") == kind]

    def part(self, name: str) -> dict[str, Any]:
        """A table of result.json, empty where it has none."""
        return dict(self.result.get(name) or {})

    @property
    def command(self) -> str:
        """The command that began the run: one that resumed it does not repeat it."""
        begun = next((event["command"] for event in self.events("start") if event.get("command")), None)
        return str(begun or self.result.get("command") or "")


def read(folder: Path) -> RunRecord:
    check(folder.is_dir(), f"'{folder}' is not a folder: give the folder of a run")
    result = read_json(folder / "result.json") or {}
    recipe = folder / "recipe.toml"
    return RunRecord(
        folder=folder,
        test=_test(folder / "test.npz", (result.get("model") or {}).get("geometry") or "sphere"),
        recipe=recipe.read_text(encoding="utf-8", errors="replace") if recipe.is_file() else "",
        log=_log(folder / "log.jsonl"),
        audit=read_json(folder / "audit.json"),
        result=result,
    )


def _log(path: Path) -> list[dict[str, Any]]:
    """The events of a log; a last line cut off by a crash is left out."""
    if not path.is_file():
        return []
    events = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            events.append(event)
    return events


def _test(path: Path, geometry: Any) -> UnseenImages:
    check(path.is_file(), f"'{path.parent}' holds no test.npz, the embeddings of the test images: is the run complete?")
    try:
        with np.load(path, allow_pickle=False) as content:
            arrays = dict(content)
    except (OSError, ValueError) as error:
        raise UserError(f"'{path}' cannot be read as .npz ({error}): repeat the run's evaluation") from None
    for name in ("embeddings", "labels"):
        check(name in arrays, f"'{path}' has no array '{name}': it holds {', '.join(arrays) or 'none'}")
    gallery = arrays.get("gallery_embeddings")
    check((gallery is None) == ("gallery_labels" not in arrays), f"'{path}' needs both gallery arrays, or neither")
    paths = _words(arrays.get("paths")) + ([] if gallery is None else _words(arrays.get("gallery_paths")))
    rows = len(arrays["labels"]) + (0 if gallery is None else len(gallery))
    return UnseenImages(
        embeddings=arrays["embeddings"],
        labels=_words(arrays["labels"]),
        categories=_words(arrays["categories"]) if arrays.get("categories", np.empty(0)).size else None,
        paths=paths if len(paths) == rows else [],
        gallery=gallery,
        gallery_labels=None if gallery is None else _words(arrays["gallery_labels"]),
        geometry=check_geometry(geometry),
    )


def _words(array: NDArray[Any] | None) -> list[str]:
    return [] if array is None else [str(value) for value in array.tolist()]
