"""The numbers of steps and validations for other programs: TensorBoard (extra `log`), Weights & Biases, trackio."""

from importlib import import_module
from pathlib import Path
from typing import Any

from lookalike.errors import UserError, install, unknown
from lookalike.runs.log import Event

TRACKERS = ("wandb", "trackio")
PROJECT = "lookalike"
NUMBERED = ("step", "validation", "end")  # the events that have numbers


class TensorBoard:
    """A watcher that writes scalars to a `folder`, which appears with the first of them."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise UserError(f"TensorBoard is not installed: {install('log')}") from None
        self.folder, self.open = folder, SummaryWriter
        self.writer: Any = None

    def __call__(self, event: Event) -> None:
        if event["event"] not in NUMBERED:
            return
        if self.writer is None:  # only once the run has its folder; `purge_step` drops what a killed run wrote after it
            self.writer = self.open(str(self.folder), purge_step=event["step"])
        for name, value in event.items():
            if isinstance(value, float):
                self.writer.add_scalar(f"{event['event']}/{name}", value, event["step"])
        if event["event"] != "step":
            self.writer.flush()


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
        if event["event"] not in NUMBERED:
            return
        if self.run is None:
            self.run = self.library.init(project=PROJECT, name=self.folder.resolve().name)
        numbers = {f"{event['event']}/{name}": value for name, value in event.items() if isinstance(value, float)}
        self.library.log({**numbers, "step": event["step"]})
        if event["event"] == "end":
            self.library.finish()
            self.run = None
