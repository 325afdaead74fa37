"""How many steps a run takes: the recipe's, or as many as its minutes allow beside everything else."""

import math
import time
from dataclasses import dataclass, replace

import torch

from lookalike.data import Dataset
from lookalike.errors import check
from lookalike.features import embed
from lookalike.models import Model
from lookalike.protocols.class_disjoint import Parts
from lookalike.recipe import Recipe, build
from lookalike.runs import OpenRun
from lookalike.training import Loop, Plan
from lookalike.training.step_time import seconds_per_step

SPARE = 0.95  # of the minutes are planned for
REPORT = 8.0  # seconds, mostly for its map and its figures


@dataclass(frozen=True)
class Clock:
    """When a run began, and the seconds of its minutes that are reserved for what follows the evaluation."""

    began: float
    reserved: float = 0.0

    @staticmethod
    def now(reserved: float = 0.0) -> "Clock":
        return Clock(time.monotonic(), reserved)

    def left(self, minutes: float) -> float:
        """Seconds for training and evaluation."""
        return SPARE * 60 * minutes - (time.monotonic() - self.began) - self.reserved


def plan(
    recipe: Recipe, loop: Loop, model: Model, parts: Parts, clock: Clock, rate: float | None
) -> tuple[Recipe, Plan]:
    """The recipe with its number of steps, and the plan it gives; `rate` is in images embedded per second, if known."""
    table = recipe.train
    if table.minutes is None:
        return recipe, build.plan(recipe, loop.schedule.steps, batches=len(loop.sampler))
    # under [features] those of all images are there, and the head takes no time
    rate = math.inf if recipe.features is not None else rate or _rate(model, parts.train)
    held = 0 if parts.validation is None else len(parts.validation)
    left = clock.left(table.minutes) - (2.5 * len(parts.test) + len(table.blend) * held) / rate
    if table.steps is None:
        step = seconds_per_step(loop) + held / rate / table.plan.validate_every
        left, step = loop.ranks.from_first(lambda: (left, step))  # clocks differ, plans must not
        check(left > step, f"{table.minutes:g} minutes do not suffice for a step and the evaluation: give more")
        recipe = replace(recipe, train=replace(table, steps=int(left / step)))
    assert recipe.train.steps is not None
    return recipe, build.plan(recipe, recipe.train.steps, left, len(loop.sampler))


def announce(run: OpenRun, recipe: Recipe, plan: Plan) -> None:
    """Log what was planned; a run that the clock measured says so."""
    event = {"event": "plan", "steps": plan.steps, "seconds": plan.seconds, "seed": plan.seed}
    if plan.seconds is not None:
        step = plan.seconds / plan.steps
        event["text"] = f"{plan.steps:,} steps of {step:.2f} s fit {recipe.train.minutes:g} minutes"
    run.tell(event)


def _rate(model: Model, part: Dataset) -> float:
    """Images embedded per second."""
    few = part.subset(torch.arange(min(64, len(part))))
    start = time.monotonic()
    embed(model, few)
    return len(few) / (time.monotonic() - start)
