"""A finished training, read back: its recipe, its log, and what it measured, query by query.

A folder that holds only `test.npz` (the embeddings of the test images) is enough: then they are measured here.
"""

import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from lookalike import files
from lookalike.errors import UserError, check
from lookalike.evaluation import Result, evaluate
from lookalike.runs.embeddings import Arrays, read_embeddings
from lookalike.runs.folder import RunFolder
from lookalike.runs.log import read_log

METRICS = ("recall@1", "r_precision", "map@r")  # where a folder holds nothing but embeddings
Tree = dict[str, Any]


class NamedResult(NamedTuple):
    """One way to embed one set of images, and what it is worth."""

    name: str
    role: str  # model, train or baseline
    optimistic: bool
    result: Result


def save_results(folder: RunFolder, results: Sequence[NamedResult]) -> None:
    rows = [row._asdict() | {"result": json.loads(row.result.to_json())} for row in results]
    files.write_text(folder.measured, json.dumps(rows, ensure_ascii=False))


def load_results(folder: RunFolder) -> list[NamedResult]:
    """The results of a finished run, the model's own on the main test set first."""
    try:
        rows = json.loads(folder.measured.read_text(encoding="utf-8"))
        return [NamedResult(**row | {"result": Result.from_json(json.dumps(row["result"]))}) for row in rows]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(
            f"the run in {folder.path} is not complete ({error}): delete that folder and run it again"
        ) from None


@dataclass(frozen=True)
class Finished:
    """One training that is over.

    path: its folder.
    settings: the recipe.
    content: result.json.
    results: by role: model, train (its train images), baseline; the first of each role.
    optimistic: whether some of them were selected on the test images.
    """

    path: Path
    settings: Tree
    content: Tree
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
        return read_log(RunFolder(self.path).log).events

    @property
    def training(self) -> Tree:
        """Steps, seconds and other known costs."""
        return dict(self.content.get("training") or {})


def is_run(path: Path) -> bool:
    """Whether a folder holds one training with its numbers."""
    folder = RunFolder(path)
    return folder.measured.is_file() or folder.test.is_file()


def read(path: Path) -> Finished:
    """The training in a folder; where there is only test.npz, its embeddings are measured now."""
    folder = RunFolder(path)
    names = f"{folder.measured.name} or {folder.test.name}"
    check(is_run(path), f"'{path}' holds no finished run (neither {names}): continue it with --resume")
    settings, content = read_toml(folder.recipe), read_json(folder.result, {})
    if not folder.measured.is_file():
        geometry = (content.get("model") or {}).get("geometry") or "sphere"
        return Finished(path, settings, content, {"model": _measure(folder.test, geometry)}, False)
    results: dict[str, Result] = {}
    rows = load_results(folder)
    for row in rows:
        results.setdefault(row.role, row.result)
    return Finished(path, settings, content, results, any(row.optimistic for row in rows))


@contextmanager
def fitting(what: str) -> Iterator[None]:
    """Around code that reads the files of a run: content in another form than a run writes is one line."""
    try:
        yield
    except UserError:
        raise
    except (TypeError, KeyError, AttributeError, ValueError, IndexError) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise UserError(f"{what} holds files of a run that cannot be read ({reason}): run it again") from error


def load_test(path: Path) -> Arrays | None:
    """The arrays of a run's test.npz, if it still has them (the cells of a study do not)."""
    file = RunFolder(path).test
    return read_embeddings(file) if file.is_file() else None


def _measure(path: Path, geometry: Any) -> Result:
    arrays = read_embeddings(path)
    gallery, labels = arrays.get("gallery_embeddings"), arrays.get("gallery_labels")
    return evaluate(
        arrays["embeddings"],
        arrays["labels"].tolist(),
        gallery=gallery,
        gallery_labels=None if labels is None else labels.tolist(),
        metrics=METRICS,
        normalise=geometry,
    )


def read_toml(path: Path) -> Tree:
    """The tables of a run's recipe; none where there is no file."""
    if not path.is_file():
        return {}
    try:
        return tomllib.loads(files.read_text(path))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"'{path}' is not a recipe ({error})") from None


def read_json(path: Path, otherwise: Any = None) -> Any:
    """The content of a JSON file of a run, or `otherwise` where there is none."""
    if not path.is_file():
        return otherwise
    try:
        return files.read_json(path)
    except (OSError, ValueError) as error:
        raise UserError(f"'{path}' is not JSON ({error}): is the run complete?") from None
