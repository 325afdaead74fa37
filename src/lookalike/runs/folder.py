"""A run on disk: the names of its files, one owner at a time, and how it begins or resumes.

Only this package knows what a run's folder looks like. Whoever works in one holds its lock: a second process is
refused, and what killed writers left behind can be removed.
"""

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from lookalike.errors import check
from lookalike.files import PARTIAL, lock, make_folder, remove_leftovers, write_text
from lookalike.progress import Progress
from lookalike.runs import checkpoint
from lookalike.runs.decisions import Decisions, read_decisions
from lookalike.runs.log import JsonLines, Watcher, ignore, read_log, to_all

LOCK = ".lock"
Intent = Literal["new", "fresh", "resume", "either"]  # "either": resume what is there, or begin


class RunFolder:
    """The places in a run's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.recipe = path / "recipe.toml"
        self.log = path / "log.jsonl"
        self.decisions = path / "decisions.json"
        self.audit = path / "audit.json"
        self.checkpoint = path / "checkpoint"
        self.start = self.checkpoint / "start"  # the first weights, where trained ones are blended with them
        self.model = path / "model"
        self.result = path / "result.json"
        self.measured = path / "measured.json"  # query by query
        self.test = path / "test.npz"  # the embeddings of the test images
        self.report = path / "report.html"
        self.figures = path / "figures"
        self.thumbnails = path / "thumbnails.npz"
        self.suspicious_labels = path / "suspicious_labels.csv"
        self.tracker = path / "tracker.txt"  # what the run is called by a tracker
        self.value = path / "value.json"  # the validation figure of a run that ends there, as the folds of a trial do

    @property
    def begun(self) -> bool:
        return self.recipe.is_file()

    @property
    def finished(self) -> bool:
        """A run killed between its last two files has only the first."""
        return self.measured.is_file() and self.result.is_file()

    def drop_weights(self) -> None:
        """Keep the numbers and forget the rest: what a finished cell of a sweep no longer needs."""
        for name in (self.checkpoint.name, self.model.name, self.test.name, self.figures.name):
            for large in list(self.path.rglob(name)):
                shutil.rmtree(large) if large.is_dir() else large.unlink()

    def check(self, intent: Intent) -> None:
        """Refuse an `intent` that the folder does not allow; nothing is touched."""
        check(intent != "resume" or self.begun, f"there is no run to resume in {self.path}: leave out --resume")
        check(
            intent != "new" or not self.begun,
            f"{self.path} holds a run: continue it with --resume, replace it with --fresh, or choose another --out",
        )
        if intent == "either" or self.begun or not self.path.exists():
            return
        foreign = not self.path.is_dir() or any(not _ours(path.name) for path in self.path.iterdir())
        check(not foreign, f"{self.path} exists and is not a run: choose a new --out")

    @contextmanager
    def locked(self) -> Iterator[bool]:
        """Whether this process is the one that works here now; leftovers of killed writers are removed."""
        make_folder(self.path)
        check(os.access(self.path, os.W_OK), f"cannot write to {self.path}: choose another --out")
        with lock(self.path / LOCK, seconds=0) as held:
            if held:
                remove_leftovers(self.path)
                remove_leftovers(self.checkpoint)
            yield held

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """This folder is ours until the block ends; refused where it is another's."""
        with self.locked() as held:
            check(held, f"another process is working in {self.path}: wait for it, or choose another --out")
            yield

    def begin(self, intent: Intent, recipe: str, tell: Watcher = ignore) -> "OpenRun":
        """Begin or resume, by the owner of the folder. A new run has its `recipe` (TOML) from the start; a resumed one
        keeps its own."""
        self.check(intent)
        resumed = self.begun and intent != "fresh"
        log = JsonLines(self.log)
        if resumed:
            checkpoint.check_whole(self.checkpoint)
            before = read_log(self.log)
            decisions = read_decisions(self.decisions, before)
            log.rewind(checkpoint.step(self.checkpoint))
            if before.skipped:
                log({"event": "note", "text": f"{before.skipped} damaged lines of the log were skipped"})
        else:
            self.clear()
            write_text(self.recipe, recipe)
            decisions = Decisions(self.decisions)
        return OpenRun(self, to_all(log, tell), decisions, resumed)

    def clear(self) -> None:
        """Remove everything but the lock: a run that is replaced, or one that was killed before it had a recipe."""
        self.recipe.unlink(missing_ok=True)  # first: half of a run is not a run
        for path in self.path.iterdir():
            if path.name != LOCK:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _ours(name: str) -> bool:
    return name == LOCK or (name.startswith(".") and name.endswith(PARTIAL))


@dataclass(frozen=True)
class OpenRun:
    """A run at work.

    folder: its places on disk.
    tell: called with every event; the log is among those who hear it.
    decisions: what it has decided, before it was resumed too.
    resumed: whether it had begun before.
    """

    folder: RunFolder
    tell: Watcher
    decisions: Decisions
    resumed: bool = False

    def stage(self, name: str) -> Progress:
        """Announce the stage called `name`; the function returned reports how far it is."""
        self.tell({"event": "stage", "name": name})
        return lambda done, total: self.tell({"event": "progress", "name": name, "done": done, "total": total})

    def note(self, text: str) -> None:
        """Write a `text` for people into the log."""
        self.tell({"event": "note", "text": text})


def differences(old: Mapping[str, Any], new: Mapping[str, Any], where: str = "") -> list[str]:
    """The keys in which two recipes differ, as sentences.

    >>> differences({"train": {"steps": 5}}, {"train": {"steps": 9}})
    ['train.steps was 5 and is now 9']
    """
    changes = []
    for key in sorted(old.keys() | new.keys()):
        before, now = old.get(key, "not set"), new.get(key, "not set")
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            changes += differences(before, now, f"{where}{key}.")
        elif _plain(before) != _plain(now):
            changes.append(f"{where}{key} was {before} and is now {now}")
    return changes


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
