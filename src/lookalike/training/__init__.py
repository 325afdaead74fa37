"""Training: an objective, a loop that knows nothing of it, and the course of a run around them.

Throughout, `step` is the number of steps taken so far, `embeddings` are n × d, raw, and `labels` n class numbers.
"""

from lookalike.runs.log import JsonLines, to_all
from lookalike.training.divergence import DivergedError
from lookalike.training.early_stop import EarlyStop
from lookalike.training.head import principal
from lookalike.training.health import Health, unreachable_margin
from lookalike.training.loop import Clipping, Loop
from lookalike.training.objective import Objective
from lookalike.training.schedules import Plateau, Schedule
from lookalike.training.trackers import TensorBoard, Tracker
from lookalike.training.train import Ending, Plan, StoppedError, train

__all__ = [
    "Clipping",
    "DivergedError",
    "EarlyStop",
    "Ending",
    "Health",
    "JsonLines",
    "Loop",
    "Objective",
    "Plan",
    "Plateau",
    "Schedule",
    "StoppedError",
    "TensorBoard",
    "Tracker",
    "principal",
    "to_all",
    "train",
    "unreachable_margin",
]
