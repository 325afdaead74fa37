"""The numbers of steps and validations for TensorBoard (extra `log`)."""

from pathlib import Path
from typing import Any

from lookalike.errors import UserError, install
from lookalike.runs.log import Event


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
        if event["event"] not in ("step", "validation", "end"):
            return
        if self.writer is None:  # only once the run has its folder; `purge_step` drops what a killed run wrote after it
            self.writer = self.open(str(self.folder), purge_step=event["step"])
        for name, value in event.items():
            if isinstance(value, float):
                self.writer.add_scalar(f"{event['event']}/{name}", value, event["step"])
        if event["event"] != "step":
            self.writer.flush()
