"""A run on the terminal: bars and the latest numbers on stderr; plain lines where stderr is not a terminal."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lookalike.runs.log import Event, Watcher, ignore


@contextmanager
def live(shown: bool = True) -> Iterator[Watcher]:
    """A watcher that draws events; it ignores them unless `shown`."""
    from rich.console import Console

    if not shown:
        yield ignore
        return
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield _Lines(console)
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[numbers]}", markup=False),
    )
    with Progress(*columns, console=console) as drawing:
        yield _Bars(console, drawing)


class _Lines:
    """One line per stage, validation, note and problem; now and then one for the loss."""

    def __init__(self, console: Any) -> None:
        self.console = console

    def __call__(self, event: Event) -> None:
        text = spoken(event)
        if text and (event["event"] != "step" or event["step"] % 50 == 0):
            self.console.print(text, markup=False, soft_wrap=True)


class _Bars:
    """A bar for the stage that is under way, with the latest loss and validation beside it; notes scroll by above."""

    def __init__(self, console: Any, drawing: Any) -> None:
        self.console, self.drawing = console, drawing
        self.task: Any = None
        self.numbers = {"step": "", "validation": ""}

    def __call__(self, event: Event) -> None:
        kind = event["event"]
        if kind == "stage":
            if self.task is not None:
                self.drawing.remove_task(self.task)
            self.task = self.drawing.add_task(spoken(event).removesuffix(" …"), total=None, numbers="")
        elif kind == "progress":
            self.drawing.update(self.task, completed=event["done"], total=event["total"])
        elif kind == "step":
            self.numbers["step"] = f"loss {event['loss']:.3f}  {event['images_per_second']:.0f} images/s"
            self.drawing.update(self.task, completed=event["step"], total=event["steps"], numbers=self.shown())
        elif kind == "validation":
            self.numbers["validation"] = scores(event)
            self.drawing.update(self.task, numbers=self.shown())
        if kind in ("note", "sample", "health", "validation", "end") or (kind == "plan" and spoken(event)):
            self.console.print(spoken(event), markup=False, soft_wrap=True)

    def shown(self) -> str:
        return "  ".join(text for text in self.numbers.values() if text)


def scores(event: Event) -> str:
    return "  ".join(f"{name} {event[name]:.3f}" for name in ("recall@1", "map@r") if name in event)


def duration(seconds: float) -> str:
    """Seconds, or minutes and seconds.

    >>> duration(42.3), duration(200)
    ('42 s', '3:20 min')
    """
    return f"{seconds:.0f} s" if seconds < 60 else f"{int(seconds) // 60}:{int(seconds) % 60:02d} min"


def spoken(event: Event) -> str:
    """An event in words; nothing for those that only move a bar.

    >>> spoken({"event": "validation", "step": 50, "recall@1": 0.61, "map@r": 0.42})
    'step 50: validation recall@1 0.610  map@r 0.420'
    """
    match event["event"]:
        case "start":
            return f"{'resuming on' if event['resumed'] else 'starting on'} {event['data']}"
        case "stage":
            left = f" ({duration(event['seconds_left'])} left)" if "seconds_left" in event else ""
            return f"{event['name']}{left} …"
        case "step":
            left = (event["steps"] - event["step"]) * event["seconds"] / event["step"]
            speed = f"{event['images_per_second']:.0f} images/s"
            return f"step {event['step']}/{event['steps']}: loss {event['loss']:.4f}, {speed}, {left:.0f} s left"
        case "validation":
            on = "test (optimistic)" if event.get("on") == "test" else "validation"
            return f"step {event['step']}: {on} {scores(event)}"
        case "health":
            return f"step {event['step']}: {event['kind']}: {event['advice']}"
        case "note" | "sample" | "plan":
            return str(event.get("text", ""))
        case "end":
            return f"{event['why']}; the best weights are those of step {event['best_step']}"
    return ""
