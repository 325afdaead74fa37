"""How learning rates change over a run: a factor on every group's own rate, from the step and, for `plateau`, from
validation.

Warm-up raises the factor in a straight line over the first steps. `head_steps`, or `head_epochs`, holds the backbone's
rate at zero for that long: the head and the proxies settle first ([math G.2], proxy baselines).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from lookalike.catalog import FACT
from lookalike.errors import check, unknown

Factor = Callable[["Schedule", int, int], float]  # of the step and of the reductions so far


@dataclass(frozen=True)
class Schedule:
    """[schedule]: the factor at every step of a run.

    name: "constant", "cosine" (to 0 at the end), "step" (at milestones) or "plateau" (when validation stands still).
    steps: of the whole run.
    warmup: steps in which the factor rises to its full size; 0: none.
    head_steps: steps in which the group named "backbone" does not learn.
    head_epochs: the same in passes over the train images; None: head_steps decides.
    gamma: step, plateau: what the factor is multiplied by each time.
    milestones: step: the steps at which that happens.
    patience: plateau: validations without a new best that are still accepted.

    >>> [round(Schedule("cosine", steps=100, warmup=10).factor(step), 3) for step in (0, 9, 50, 99)]
    [0.1, 0.98, 0.5, 0.0]
    """

    name: str = "constant"
    steps: int = field(default=1000, metadata=FACT)
    warmup: int = 0
    head_steps: int = 0
    gamma: float = 0.1
    milestones: tuple[int, ...] = ()
    patience: int = 4
    head_epochs: int | None = None

    def __post_init__(self) -> None:
        if self.name not in SCHEDULES:
            raise unknown("schedule", self.name, SCHEDULES)
        check(self.steps > 0, f"a run has at least one step, not {self.steps}")
        waits = (self.warmup, self.head_steps, self.head_epochs or 0)
        check(min(waits) >= 0, "warmup, head_steps and head_epochs must be at least 0")
        check(not (self.head_steps and self.head_epochs), "give schedule.head_steps or schedule.head_epochs, not both")
        check(0 < self.gamma <= 1, f"gamma lies between 0 and 1, not {self.gamma}")
        check(self.name != "step" or len(self.milestones) > 0, "the schedule 'step' needs milestones: give their steps")

    def over(self, steps: int, batches: int) -> "Schedule":
        """The schedule of a run of `steps` steps, in epochs of `batches` batches."""
        waits = self.head_steps if self.head_epochs is None else self.head_epochs * batches
        return replace(self, steps=steps, head_steps=waits, head_epochs=None)

    def factor(self, step: int, reductions: int = 0) -> float:
        """What every rate is multiplied by; `reductions`: how often validation has stood still."""
        raised = min(1.0, (step + 1) / self.warmup) if self.warmup else 1.0
        return raised * SCHEDULES[self.name](self, step, reductions)

    def apply(self, optimiser: torch.optim.Optimizer, step: int, reductions: int = 0) -> None:
        """Set the rates of all groups of `optimiser` for this step; each remembers its own full rate as `initial_lr`.

        `reductions` are those of `factor`.
        """
        factor = self.factor(step, reductions)
        for group in optimiser.param_groups:
            full = group.setdefault("initial_lr", group["lr"])
            waiting = group.get("name") == "backbone" and step < self.head_steps
            group["lr"] = 0.0 if waiting else factor * full


@dataclass
class Plateau:
    """Counts how often validation stood still for more than `patience` rounds; only the schedule `plateau` uses it."""

    patience: int
    reductions: int = field(default=0, init=False)
    waited: int = field(default=0, init=False)
    best: float = field(default=-math.inf, init=False)

    def validated(self, value: float) -> None:
        """Take note of the `value` of a validation; higher is better."""
        if value > self.best:
            self.best, self.waited = value, 0
            return
        self.waited += 1
        if self.waited > self.patience:
            self.reductions, self.waited = self.reductions + 1, 0

    def state_dict(self) -> dict[str, Any]:
        return {"reductions": self.reductions, "waited": self.waited, "best": self.best}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.reductions, self.waited, self.best = state["reductions"], state["waited"], state["best"]


def _cosine(schedule: Schedule, step: int, reductions: int) -> float:
    del reductions
    return 0.5 * (1 + math.cos(math.pi * min(1.0, step / schedule.steps)))


def _step(schedule: Schedule, step: int, reductions: int) -> float:
    del reductions
    return schedule.gamma ** sum(step >= milestone for milestone in schedule.milestones)


SCHEDULES: dict[str, Factor] = {
    "constant": lambda *_: 1.0,
    "cosine": _cosine,
    "plateau": lambda schedule, _, reductions: schedule.gamma**reductions,
    "step": _step,
}
