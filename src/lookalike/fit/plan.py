"""How many steps a run takes: the recipe's, or as many as its minutes allow beside everything else."""

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import torch

from lookalike.data import Dataset
from lookalike.errors import UserError
from lookalike.features import embed
from lookalike.models import Model
from lookalike.protocols.class_disjoint import Parts
from lookalike.recipe import Recipe, build
from lookalike.runs import OpenRun
from lookalike.runs.log import read_log
from lookalike.training import Loop, Plan
from lookalike.training.step_time import STEPS, seconds_per_step

SPARE = 0.95  # of the minutes are planned for
REPORT = 8.0  # seconds, mostly for its map and its figures
AFTER = 1024  # train images that pass the trained network once more, for the mean of its features
STEP = 4.0  # a training step takes about so much longer than embedding its images
WORTHWHILE = 100  # steps, from which on fine-tuning can be expected to help


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


class NotEnoughTimeError(RuntimeError):
    """Why a run is refused whose minutes do not suffice for a step: about `needed` would let it learn something."""

    def __init__(self, needed: int) -> None:
        super().__init__(f"{needed} minutes are needed")
        self.needed = needed


def plan(
    recipe: Recipe, loop: Loop, model: Model, parts: Parts, clock: Clock, rate: float | None
) -> tuple[Recipe, Plan]:
    """The recipe with its number of steps, and the plan it gives; `rate` is in images embedded per second, if known."""
    table = recipe.train
    if table.minutes is None:
        return recipe, build.plan(recipe, loop.schedule.steps, batches=len(loop.sampler))
    # under [features] those of all images are there, and the head takes no time
    rate = math.inf if recipe.features is not None else rate or embedding_rate(model, parts.train)
    held = 0 if parts.validation is None else len(parts.validation)
    after = _embedded_after(recipe, parts, held) / rate
    rough = STEP * loop.sampler.batch_size / rate
    left = loop.ranks.from_first(lambda: clock.left(table.minutes or 0.0) - after)  # clocks differ, plans must not
    if left < (STEPS + 1) * rough and table.deliver == "best":  # not even enough to measure a step
        raise _refusal(table.minutes) from NotEnoughTimeError(_minutes_needed(table.minutes, left, rough))
    if table.steps is None:
        step = seconds_per_step(loop) + held / rate / table.plan.validate_every
        left, step = loop.ranks.from_first(lambda: (clock.left(table.minutes or 0.0) - after, step))
        if left <= step:
            raise _refusal(table.minutes) from NotEnoughTimeError(_minutes_needed(table.minutes, left, step))
        recipe = replace(recipe, train=replace(table, steps=int(left / step)))
    assert recipe.train.steps is not None
    return recipe, build.plan(recipe, recipe.train.steps, left, len(loop.sampler))


def _refusal(minutes: float) -> UserError:
    return UserError(f"{minutes:g} minutes do not suffice for a step and the evaluation: give more")


def _embedded_after(recipe: Recipe, parts: Parts, held: int) -> float:
    """Images embedded after training: by the model and its baselines, by every blend, by the candidates."""
    count = 2.5 * len(parts.test) + len(recipe.train.blend) * held
    return count + (held + min(AFTER, len(parts.train)) if recipe.train.deliver == "best" else 0)


def _minutes_needed(minutes: float, left: float, step: float) -> int:
    """Whole minutes in which a worthwhile number of steps would fit."""
    return math.ceil((60 * minutes * SPARE - left + WORTHWHILE * step) / 60 / SPARE)


def logged(run: OpenRun, recipe: Recipe, loop: Loop) -> Plan | None:
    """The plan that a resumed run follows, whatever the clock says now."""
    events = read_log(run.folder.log).of("plan")
    if not events or recipe.train.minutes is None or recipe.train.steps is None:
        return None
    return build.plan(recipe, recipe.train.steps, events[-1]["seconds"], len(loop.sampler))


def announce(run: OpenRun, recipe: Recipe, plan: Plan) -> None:
    """Log what was planned; a run that the clock measured says so."""
    event: dict[str, Any] = {"event": "plan", "steps": plan.steps, "seconds": plan.seconds, "seed": plan.seed}
    if plan.seconds is not None:
        step = plan.seconds / plan.steps
        event["text"] = f"{plan.steps:,} steps of {step:.2f} s fit {recipe.train.minutes:g} minutes"
    run.tell(event)


def announce_none(run: OpenRun, recipe: Recipe, needed: int) -> None:
    """Log that there is no time to train; a resumed run does not train either."""
    text = f"{recipe.train.minutes:g} minutes are too short to train: fine-tuning would need about {needed} minutes"
    run.tell({"event": "plan", "steps": 0, "seconds": 0.0, "seed": recipe.seed, "minutes": needed, "text": text})


def embedding_rate(model: Model, part: Dataset) -> float:
    """Images embedded per second."""
    few = part.subset(torch.arange(min(64, len(part))))
    start = time.monotonic()
    embed(model, few)
    return len(few) / (time.monotonic() - start)
