"""The numbers of steps and validations for Weights & Biases or trackio, which share one interface."""

from importlib import import_module
from pathlib import Path
from typing import Any

from lookalike.errors import UserError, unknown
from lookalike.runs.log import Event

TRACKERS = ("wandb", "trackio")
PROJECT = "lookalike"


class Tracker:
    """A watcher that logs to the tracker called `name`, as a run that has the name of its `folder`.

    Their own settings decide where the numbers go: WANDB_MODE=offline keeps them in the folder `wandb`, TRACKIO_DIR
    says where trackio keeps its own.
    """

    def __init__(self, name: str, folder: Path) -> None:
        if name not in TRACKERS:
            raise unknown("tracker", name, TRACKERS)
        try:
            self.library: Any = import_module(name)
        except ImportError:
            raise UserError(f"{name} is not installed: pip install {name}") from None
        self.folder, self.run = folder, None

    def __call__(self, event: Event) -> None:
        if event["event"] not in ("step", "validation", "end"):
            return
        if self.run is None:
            self.run = self.library.init(project=PROJECT, name=self.folder.resolve().name)
        numbers = {f"{event['event']}/{name}": value for name, value in event.items() if isinstance(value, float)}
        self.library.log({**numbers, "step": event["step"]})
        if event["event"] == "end":
            self.library.finish()
            self.run = None
