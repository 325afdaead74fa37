"""The numbers of steps and validations for other programs: TensorBoard (extra `log`), Weights & Biases, trackio."""

import secrets
from importlib import import_module
from pathlib import Path
from typing import Any

from lookalike.errors import UserError, install, unknown
from lookalike.files import write_once
from lookalike.runs import RunFolder
from lookalike.runs.log import Event

TRACKERS = ("wandb", "trackio")
PROJECT = "lookalike"
NUMBERED = ("step", "validation", "end")  # the events that have numbers


def numbers(event: Event) -> dict[str, float]:
    """What an event measured, by the name of the event and its own.

    >>> numbers({"event": "validation", "step": 50, "recall@1": 0.5, "name": "a"})
    {'validation/recall@1': 0.5}
    """
    measured = {name: value for name, value in event.items() if isinstance(value, int | float) and name != "step"}
    return {f"{event['event']}/{name}": value for name, value in measured.items() if not isinstance(value, bool)}


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
        for name, value in numbers(event).items():
            self.writer.add_scalar(name, value, event["step"])
        if event["event"] != "step":
            self.writer.flush()


class Tracker:
    """A watcher that logs to the tracker called `name`, as one run for its `folder`, however often that is resumed.

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
        self.name, self.folder, self.run = name, folder, None

    def __call__(self, event: Event) -> None:
        if event["event"] not in NUMBERED:
            return
        if self.run is None:
            self.run = self._opened()
        self.library.log({**numbers(event), "step": event["step"]})
        if event["event"] == "end":
            self.library.finish()
            self.run = None

    def _opened(self) -> Any:
        """The run of the tracker: that of before, if this one is resumed."""
        kept = RunFolder(self.folder).tracker
        write_once(kept, secrets.token_hex(4))
        key = kept.read_text(encoding="utf-8")
        settings = {"id": key} if self.name == "wandb" else {}  # trackio goes by the name
        return self.library.init(
            project=PROJECT, name=f"{self.folder.resolve().name}-{key}", resume="allow", **settings
        )
