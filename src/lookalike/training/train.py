"""A run from its first step to its end: validation, early stopping, the best weights, checkpoints, a time budget.

`train` starts or resumes: where the checkpoint folder holds a state, it begins there, and the result is the same, bit
by bit, as if it had never stopped.
"""

import copy
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lookalike.catalog import FACT
from lookalike.errors import NotFiniteError, UserError, check
from lookalike.runs import checkpoint
from lookalike.runs.log import Event, Watcher, ignore
from lookalike.training.divergence import DivergedError, check_weights, diverged
from lookalike.training.early_stop import EarlyStop
from lookalike.training.health import Health
from lookalike.training.loop import Loop, Trained
from lookalike.training.pace import Pace

Validate = Callable[[], Mapping[str, float]]
Stop = Callable[[], bool]


@dataclass(frozen=True)
class Plan:
    """How long a run is, how often it validates, and when it stops early.

    steps: of the whole run; of a flexible plan, as far as can be told now.
    validate_every: steps between two validations, after each of which the run is saved.
    patience: validations without improvement after which the run ends; None: it never ends early.
    min_improvement: by how much a validation must exceed the best one to count as better.
    select: the validation metric that chooses the best weights; higher is better.
    log_every: steps that one event sums up.
    seconds: after this time the run ends, wherever it stands; None: no limit.
    flexible: as many steps as fit `seconds`.
    seed: of torch's own random numbers, such as dropout.
    save_every: seconds between two checkpoints, at least.
    """

    steps: int = field(default=1, metadata=FACT)
    validate_every: int = 50
    patience: int | None = None
    min_improvement: float = 1e-5
    select: str = "map@r"
    log_every: int = 10
    seconds: float | None = field(default=None, metadata=FACT)
    flexible: bool = field(default=False, metadata=FACT)
    seed: int = field(default=0, metadata=FACT)
    save_every: float = field(default=0.0, metadata=FACT)

    def __post_init__(self) -> None:
        for name in ("steps", "validate_every", "log_every"):
            check(getattr(self, name) > 0, f"{name} must be at least 1, not {getattr(self, name)}")
        check(self.seconds is None or self.seconds > 0, "there is no time left to train: give more minutes")


class StoppedError(RuntimeError):
    """The run was asked to stop; its state is saved."""


@dataclass(frozen=True)
class Ending:
    """How a run ended.

    why: in words.
    steps: how many were taken.
    best_step: the step whose weights were kept; without validation, the last.
    best: validation figures of those weights.
    seconds: of training, including those before it was resumed.
    """

    why: str
    steps: int
    best_step: int
    best: Mapping[str, float]
    seconds: float


@dataclass
class _Progress:
    """How far a run is, besides its loop."""

    watch: EarlyStop
    validated_at: int = -1
    best: dict[str, float] = field(default_factory=dict)
    best_state: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0  # before it was resumed

    def state_dict(self) -> dict[str, Any]:
        named = ("validated_at", "best", "best_state", "seconds")
        return {"watch": self.watch.state_dict()} | {name: getattr(self, name) for name in named}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.watch.load_state_dict(state["watch"])
        for name in ("validated_at", "best", "best_state", "seconds"):
            setattr(self, name, state[name])


def train(
    loop: Loop,
    plan: Plan,
    *,
    validate: Validate | None = None,
    folder: Path | None = None,
    tell: Watcher = ignore,
    stop: Stop = lambda: False,
    pace: Pace | None = None,
) -> Ending:
    """Train `loop` to the end of the `plan` and leave the best weights in its network; `folder` keeps checkpoints.

    `validate()` returns figures by name; without it the last weights stay. `tell` is called with every event.
    A flexible plan is made again as the run goes; `pace` keeps such plans, and has those of a run that is resumed.
    `stop` is called after every step; when it returns true, the state is saved and `StoppedError` raised. Where numbers
    end, `DivergedError` is raised: the best weights so far are in the network, the last good ones in `folder`.
    """
    run = _Training(loop, plan, validate, folder, tell, pace or Pace())
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(plan.seed)
        run.restore()
        try:
            return run.to_the_end(stop)
        except DivergedError:
            run.keep_best()
            raise


class _Training:
    def __init__(
        self, loop: Loop, plan: Plan, validate: Validate | None, folder: Path | None, tell: Watcher, pace: Pace
    ) -> None:
        self.loop, self.plan, self.validate, self.folder, self.tell = loop, plan, validate, folder, tell
        self.progress = _Progress(EarlyStop(plan.patience, plan.min_improvement))
        self.health = Health()
        self.began = self.saved = time.monotonic()
        self.recent: list[Trained] = []
        self.pace = pace

    @property
    def seconds(self) -> float:
        return self.progress.seconds + time.monotonic() - self.began

    def restore(self) -> None:
        """Resume from the checkpoint, or begin."""
        folder, ranks = self.folder, self.loop.ranks
        saved = folder is not None and ranks.from_first(lambda: checkpoint.exists(folder))
        if folder is None or not saved:
            ranks.same_start(self.loop.network, self.loop.objective)
            self.report_event(None if self.loop.strategy is None else self.loop.strategy.begin())
            return
        state = ranks.from_first(lambda: checkpoint.load(folder))
        self.loop.load_state_dict(state["loop"])
        self.progress.load_state_dict(state["course"])
        self.health.load_state_dict(state["health"])

    def report_event(self, event: Event | None) -> None:
        if event is not None:
            self.tell(event)

    def save(self, every: float = 0.0) -> None:
        """Save, unless that was done less than `every` seconds ago."""
        check_weights((self.loop.network, self.loop.objective), self.loop.step)
        if time.monotonic() - self.saved < every:
            return
        self.saved = time.monotonic()
        if self.folder is not None and self.loop.ranks.first:
            course = self.progress.state_dict() | {"seconds": self.seconds}
            parts = {"loop": self.loop.state_dict(), "course": course, "health": self.health.state_dict()}
            checkpoint.save(self.folder, self.loop.step, parts)

    def to_the_end(self, stop: Stop) -> Ending:
        why = self.why_end()
        while why is None:
            self.validate_and_save()
            why = self.why_end()
            if why is None:
                self.step()
                self.plan_again()
                if self.loop.ranks.any(stop()):
                    self.save()
                    raise StoppedError(f"stopped after step {self.loop.step} of {self.plan.steps}")
        self.validate_and_save()
        return self.end(why)

    def why_end(self) -> str | None:
        if self.loop.step >= self.plan.steps:
            return f"all {self.plan.steps} steps are done"
        if self.progress.watch.over:
            return f"no better validation in {self.plan.patience} rounds"
        if self.plan.seconds is not None and self.loop.ranks.any(self.seconds > self.plan.seconds):
            return f"the time budget ended it at step {self.loop.step} of {self.plan.steps}"
        return None

    def plan_again(self) -> None:
        """Adjust the number of steps to the time budget, and with it the schedule of the learning rate."""
        if self.plan.seconds is None or not self.plan.flexible:
            return
        step, left = self.loop.step, self.plan.seconds - self.seconds
        steps = self.loop.ranks.from_first(
            lambda: self.pace.steps(step, self.plan.steps, self.plan.validate_every, left)
        )
        if steps == self.plan.steps:
            return
        text = f"{steps:,} steps, as planned before"
        if step not in self.pace.planned:
            self.pace.keep(step, steps)
            text = f"{steps:,} steps fit, at {self.pace.step_seconds:.2f} s each"
        self.tell({"event": "plan", "step": step, "steps": steps, "seconds": self.plan.seconds, "text": text})
        self.plan = replace(self.plan, steps=steps)
        self.loop.schedule = replace(self.loop.schedule, steps=max(1, steps))

    def step(self) -> None:
        began = time.monotonic()
        trained = self.loop.advance()
        self.pace.stepped(time.monotonic() - began)
        self.recent.append(trained)
        if self.loop.step % self.plan.log_every == 0 or self.loop.step == self.plan.steps:
            self.report_steps()

    def report_steps(self) -> None:
        """One event for the last few steps, and one for every new problem."""
        images = sum(len(trained.labels) for trained in self.recent)
        spent = sum(sum(trained.seconds.values()) for trained in self.recent)
        means = {
            name: _mean([trained.terms[name] for trained in self.recent if name in trained.terms])
            for name in self.recent[-1].terms
        }
        self.tell(
            {
                "event": "step",
                "step": self.loop.step,
                "steps": self.plan.steps,
                "epoch": self.loop.epoch,
                "lr": float(self.loop.optimiser.param_groups[0]["lr"]),
                "images_per_second": images / spent,
                "seconds": self.seconds,
                **means,
            }
        )
        last = self.recent[-1]
        for problem in self.health.look(last.embeddings, last.gradient):
            self.tell({"event": "health", "step": self.loop.step, "kind": problem.kind, "advice": problem.advice})
        self.recent = []

    def validate_and_save(self) -> None:
        """Where it is due, every few steps and at the end: validate, and save."""
        step, due = self.loop.step, self.loop.step % self.plan.validate_every == 0 or self.why_end() is not None
        if due and step != self.progress.validated_at:
            self.progress.validated_at = step
            if self.validate is not None:
                began = time.monotonic()
                values = self.measured(self.validate)
                self.pace.look_seconds = time.monotonic() - began
                self.judge(self.loop.ranks.from_first(lambda: values))  # what decides must be the same everywhere
            self.save(self.plan.save_every)

    def measured(self, validate: Validate) -> dict[str, float]:
        try:
            return {name: float(value) for name, value in validate().items()}
        except NotFiniteError as error:
            raise diverged("validation meets embeddings that are not numbers", self.loop.step) from error

    def judge(self, values: dict[str, float]) -> None:
        if self.plan.select not in values:
            raise UserError(f"validation does not measure '{self.plan.select}': it gives {', '.join(values)}")
        self.loop.plateau.validated(values[self.plan.select])
        if self.progress.watch.improved(self.loop.step, values[self.plan.select]):
            self.progress.best, self.progress.best_state = values, copy.deepcopy(self.loop.network.state_dict())
        self.tell({"event": "validation", "step": self.loop.step, "seconds": self.seconds, **values})
        if self.loop.strategy is not None and self.loop.step > 0 and self.why_end() is None:
            self.report_event(self.loop.strategy.validated(self.loop.step, values[self.plan.select]))

    def keep_best(self) -> None:
        if self.progress.best_state:
            self.loop.network.load_state_dict(self.progress.best_state)

    def end(self, why: str) -> Ending:
        self.keep_best()
        best_step = self.progress.watch.best_step if self.validate is not None else self.loop.step
        ending = Ending(why, self.loop.step, best_step, self.progress.best, self.seconds)
        self.tell(
            {
                "event": "end",
                "step": ending.steps,
                "seconds": ending.seconds,
                "why": why,
                "best_step": ending.best_step,
            }
        )
        return ending


def _mean(values: list[Tensor]) -> float:
    return float(torch.stack(values).mean())
