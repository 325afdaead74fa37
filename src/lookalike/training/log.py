"""The log of a run: one event a line, as JSON; and the same numbers for TensorBoard.

An event is a mapping with the key `event`: start, stage, progress, step, validation, health, note, end. Whoever watches
a run (the file, TensorBoard, a terminal, a notebook) is a function that takes events.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lookalike.errors import UserError

Event = Mapping[str, Any]
Tell = Callable[[Event], None]


def ignore(event: Event) -> None:
    """Watches nothing."""


def to_all(*watchers: Tell) -> Tell:
    """One watcher that tells many."""

    def tell(event: Event) -> None:
        for watcher in watchers:
            watcher(event)

    return tell


class JsonLines:
    """Events appended to a file; `rewind` forgets those after a step, for a run that is resumed from before them."""

    PASSING = ("progress",)  # of interest only while it happens

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, event: Event) -> None:
        if event["event"] in self.PASSING:
            return
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(event, ensure_ascii=False) + "\n")
        except OSError as error:
            raise UserError(f"cannot write {self.path} ({error.strerror}): make room and go on with --resume") from None

    def rewind(self, step: int) -> None:
        kept = [event for event in events(self.path) if event.get("step", step) <= step and event["event"] != "end"]
        partial = self.path.with_suffix(".partial")
        partial.write_text("".join(json.dumps(event, ensure_ascii=False) + "\n" for event in kept), encoding="utf-8")
        partial.replace(self.path)


def events(path: Path) -> list[dict[str, Any]]:
    """What a log holds; a last line cut off by a crash is left out."""
    if not path.is_file():
        return []
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            break
    return found


class TensorBoard:
    """The numbers of steps and validations as TensorBoard scalars (extra `log`)."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise UserError("TensorBoard is not installed: pip install 'lookalike[log]'") from None
        self.folder, self.open = folder, SummaryWriter
        self.writer: Any = None

    def __call__(self, event: Event) -> None:
        if event["event"] not in ("step", "validation", "end"):
            return
        if self.writer is None:  # not before the run has its folder; what a killed run wrote beyond here is forgotten
            self.writer = self.open(str(self.folder), purge_step=event["step"])
        for name, value in event.items():
            if isinstance(value, float):
                self.writer.add_scalar(f"{event['event']}/{name}", value, event["step"])
        if event["event"] != "step":
            self.writer.flush()
