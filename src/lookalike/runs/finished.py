"""One training on disk: its recipe, its log, and what it measured, query by query.

A folder that holds only `test.npz` (the embeddings of the test images) will do: then they are measured here.
"""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.errors import UserError, check
from lookalike.evaluation import Result, evaluate
from lookalike.training.folder import RunFolder
from lookalike.training.log import events

MEASURED = "measured.json"
METRICS = ("recall@1", "r_precision", "map@r")  # where only embeddings are there
Tree = dict[str, Any]


@dataclass(frozen=True)
class Finished:
    """`results` by role: model, train (its train images), baseline; the first of each role."""

    path: Path
    settings: Tree  # the recipe
    content: Tree  # result.json
    results: Mapping[str, Result]
    optimistic: bool

    @property
    def seed(self) -> int:
        return int(self.settings.get("seed", 0))

    @property
    def fold(self) -> int | None:
        fold: int | None = self.settings.get("protocol", {}).get("fold")
        return fold

    @cached_property
    def log(self) -> list[dict[str, Any]]:
        return events(RunFolder(self.path).log)

    @property
    def training(self) -> Tree:
        """Steps, seconds and whatever else is known of the cost."""
        return dict(self.content.get("training") or {})


def is_run(folder: Path) -> bool:
    """Whether a folder holds one training with its numbers."""
    return (folder / MEASURED).is_file() or (folder / "test.npz").is_file()


def read(folder: Path) -> Finished:
    check(is_run(folder), f"'{folder}' holds no finished run ({MEASURED} or test.npz): go on with it by --resume")
    place = RunFolder(folder)
    settings, content = _toml(place.recipe), read_json(place.result, {})
    geometry = (content.get("model") or {}).get("geometry") or "sphere"
    rows = read_json(folder / MEASURED, None)
    if rows is None:
        return Finished(folder, settings, content, {"model": _measured(place.test, geometry)}, False)
    results: dict[str, Result] = {}
    for row in rows:
        results.setdefault(row["role"], Result.from_json(json.dumps(row["result"])))
    return Finished(folder, settings, content, results, any(row["optimistic"] for row in rows))


def load_test(folder: Path) -> dict[str, Any] | None:
    """The arrays of a run's test.npz, if it still has them (the cells of a study do not)."""
    path = RunFolder(folder).test
    if not path.is_file():
        return None
    try:
        with np.load(path, allow_pickle=False) as found:
            return dict(found)
    except (OSError, ValueError) as error:
        raise UserError(f"'{path}' cannot be read as .npz ({error}): repeat the run's evaluation") from None


def _measured(path: Path, geometry: Any) -> Result:
    arrays = load_test(path.parent)
    assert arrays is not None
    for name in ("embeddings", "labels"):
        check(name in arrays, f"'{path}' has no array '{name}': it holds {', '.join(arrays) or 'none'}")
    gallery, labels = arrays.get("gallery_embeddings"), arrays.get("gallery_labels")
    return evaluate(
        arrays["embeddings"], arrays["labels"].tolist(), gallery=gallery,
        gallery_labels=None if labels is None else labels.tolist(), metrics=METRICS, normalise=geometry,
    )  # fmt: skip


def _toml(path: Path) -> Tree:
    if not path.is_file():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"'{path}' is no recipe ({error})") from None


def read_json(path: Path, otherwise: Any = None) -> Any:
    """What a file of a run holds, or `otherwise` where there is none."""
    if not path.is_file():
        return otherwise
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"'{path}' is not JSON ({error}): is the run complete?") from None
