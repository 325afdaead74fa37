"""A run on disk: recipe.toml, log.jsonl, audit.json, checkpoint/, model/, result.json, test.npz, report.html."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lookalike.errors import UserError, check

RECIPE = "recipe.toml"


@dataclass(frozen=True)
class RunFolder:
    """The places in a run's folder."""

    path: Path

    @property
    def recipe(self) -> Path:
        return self.path / RECIPE

    @property
    def log(self) -> Path:
        return self.path / "log.jsonl"

    @property
    def audit(self) -> Path:
        return self.path / "audit.json"

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint"

    @property
    def start(self) -> Path:
        """The weights before the first step, where the end is blended with them."""
        return self.checkpoint / "start.safetensors"

    @property
    def model(self) -> Path:
        return self.path / "model"

    @property
    def result(self) -> Path:
        return self.path / "result.json"

    @property
    def test(self) -> Path:
        return self.path / "test.npz"

    @property
    def begun(self) -> bool:
        return self.recipe.is_file()

    def prepare(self, resume: bool = False, fresh: bool = False) -> None:
        """Make the folder, or see that a run may go on there, before any work is done."""
        check(not (resume and fresh), "give --resume or --fresh, not both")
        if fresh and self.begun:
            shutil.rmtree(self.path)
        check(not resume or self.begun, f"there is no run to resume in {self.path}: leave out --resume")
        check(
            resume or not self.begun,
            f"{self.path} holds a run: go on with --resume, replace it with --fresh, or give another --out",
        )
        strange = self.path.exists() and not self.begun and (not self.path.is_dir() or any(self.path.iterdir()))
        check(not strange, f"{self.path} is there already and is no run: give a new --out")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"cannot make the folder {self.path} ({error.strerror}): give another --out") from None
        check(os.access(self.path, os.W_OK), f"cannot write to {self.path}: give another --out")

    def write(self, path: Path, text: str) -> None:
        """A whole file or none."""
        partial = path.with_name(f".{path.name}.partial")
        try:
            partial.write_text(text, encoding="utf-8")
            partial.replace(path)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise UserError(f"cannot write {path} ({error.strerror}): make room and go on with --resume") from None


def differences(old: Mapping[str, Any], new: Mapping[str, Any], where: str = "") -> list[str]:
    """The keys in which two recipes differ, as sentences.

    >>> differences({"train": {"steps": 5}}, {"train": {"steps": 9}})
    ['train.steps was 5 and is now 9']
    """
    found = []
    for key in sorted(old.keys() | new.keys()):
        was, now = old.get(key, "not set"), new.get(key, "not set")
        if isinstance(was, Mapping) and isinstance(now, Mapping):
            found += differences(was, now, f"{where}{key}.")
        elif _plain(was) != _plain(now):
            found.append(f"{where}{key} was {was} and is now {now}")
    return found


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
