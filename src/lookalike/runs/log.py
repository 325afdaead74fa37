"""The log of a run: one event a line, as JSON.

An event is a mapping with the key `event`: start, sample, stage, progress, plan, step, validation, health, note, end.
Whatever watches a run (this file, TensorBoard, a terminal, a notebook) is a function that takes events.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from lookalike.errors import UserError
from lookalike.files import write_text

Event = Mapping[str, Any]
Watcher = Callable[[Event], None]


def ignore(event: Event) -> None:
    """Watches nothing."""


def to_all(*watchers: Watcher) -> Watcher:
    """One watcher that passes every event on to several."""

    def tell(event: Event) -> None:
        for watcher in watchers:
            watcher(event)

    return tell


class JsonLines:
    """Events appended to the file `path`; `rewind` drops those after a step, for a run that resumes from there."""

    PASSING = ("progress",)  # of interest only while it happens

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, event: Event) -> None:
        if event["event"] in self.PASSING:
            return
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(_line(event))
        except OSError as error:
            raise UserError(
                f"cannot write {self.path} ({error.strerror}): free some space, then continue with --resume"
            ) from None

    def rewind(self, step: int) -> None:
        """Drop what came after `step`."""
        events = read_log(self.path).events
        kept = [event for event in events if event.get("step", step) <= step and event["event"] != "end"]
        write_text(self.path, "".join(_line(event) for event in kept))


def _line(event: Event) -> str:
    return json.dumps(event, ensure_ascii=False) + "\n"


class Log(NamedTuple):
    """The events of a log, and how many of its lines are not events (cut off by a crash, or damaged)."""

    events: list[dict[str, Any]]
    skipped: int

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["event"] == kind]


def read_log(path: Path) -> Log:
    """Everything readable in a log; a bad line costs only itself."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    events = [event for event in map(_event, lines) if event is not None]
    return Log(events, len(lines) - len(events))


def _event(line: str) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    known = isinstance(event, dict) and isinstance(event.get("event"), str) and isinstance(event.get("step", 0), int)
    return event if known else None
