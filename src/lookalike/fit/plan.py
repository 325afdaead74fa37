"""How many steps a run takes: the recipe's, or as many as its minutes allow beside everything else."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch

from lookalike.errors import UserError
from lookalike.features import FeatureViews
from lookalike.fit.timing import embedding_rate
from lookalike.models import Model
from lookalike.models.backends import possible as has_onnx
from lookalike.models.encoding import evaluating
from lookalike.protocols.class_disjoint import Parts
from lookalike.recipe import Recipe, build
from lookalike.runs import OpenRun
from lookalike.training import Loop, Plan
from lookalike.training.pace import Pace

SPARE = 0.97  # of the minutes are planned for
REPORT = 8.0  # seconds, mostly for its map and its figures
PER_QUERY = 2e-3  # seconds to rank a test image three times, to calibrate on it and to draw it
EXPORT = 6.0  # seconds to export a trained network to ONNX, with which it is twice as fast
WORTH_EXPORTING = 1500  # images
SMALL = ("conv4", "pixels")  # computed sooner than exported
AFTER = 2048  # train images that pass the trained network once more, for the mean and the spread of its features
STEP = 4.0  # a training step takes about so much longer than embedding its images
WORTHWHILE = 100  # steps, from which on fine-tuning can be expected to help
LEAST = 10  # steps, below which it is not even tried
VALIDATIONS, LEAST_BETWEEN = 8, 10  # validations of a run with a time budget, and the fewest steps between two of them
MOMENT = 0.2  # seconds, to see how much of a processor there is
CHOOSING, BLENDING = 0.2, 0.05  # of the minutes, at most


@dataclass(frozen=True)
class RunClock:
    """When a run began, the seconds of its minutes that are reserved for what follows the evaluation, the seconds that
    pass at least between two checkpoints, and those that choosing a network took; None: it was given."""

    began: float
    reserved: float = 0.0
    save_every: float = 0.0
    choosing: float | None = None

    @staticmethod
    def now(reserved: float = 0.0) -> "RunClock":
        return RunClock(time.monotonic(), reserved)

    @property
    def passed(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.began

    def left(self, minutes: float) -> float:
        """Seconds for training and evaluation."""
        return SPARE * 60 * minutes - self.passed - self.reserved * contention()


def contention() -> float:
    """How many times as long as on an idle machine a busy thread takes now."""
    began, used = time.monotonic(), time.thread_time()
    while time.monotonic() - began < MOMENT:
        pass
    return max(1.0, (time.monotonic() - began) / max(time.thread_time() - used, 1e-3))


class NotEnoughTimeError(UserError):
    """The minutes of a run are too few to train; `needed` of them would be enough."""

    def __init__(self, minutes: float, needed: int) -> None:
        super().__init__(f"{minutes:g} minutes are too few for ten training steps and the evaluation: give more")
        self.needed = needed


class Planned(NamedTuple):
    """A recipe whose length is decided, its plan, and what a run that is resumed had planned for later steps."""

    recipe: Recipe
    plan: Plan
    later: Mapping[int, int] = {}  # the number of steps, by the step at which it was planned


def plan(recipe: Recipe, loop: Loop, model: Model, parts: Parts, clock: RunClock) -> Planned:
    """The plan of a new run; one with minutes is planned again while it trains, from what steps really take."""
    table = recipe.train
    if table.minutes is None:
        return Planned(recipe, build.plan(recipe, loop.schedule.steps, batches=len(loop.sampler)))
    # where the head alone learns, the features of all images are there, and it takes no time
    rate = math.inf if recipe.head_only else loop.ranks.from_first(lambda: embedding_rate(model, parts.train))
    learning = rate if recipe.features is None else loop.ranks.from_first(lambda: _rate_on_features(loop, rate))
    held = 0 if parts.validation is None else len(parts.validation)
    recipe = _with_fewer_blends(recipe, held / learning)
    blends = len(recipe.train.blend) * held / learning
    after = seconds_after(recipe, parts, rate) + blends
    left = loop.ranks.from_first(lambda: clock.left(table.minutes or 0.0) - after)  # clocks differ, plans must not
    step = STEP * loop.sampler.batch_size / learning
    if left <= 0 or (table.steps is None and left < LEAST * step):
        besides = 60 * table.minutes * SPARE - left - blends - (clock.choosing or 0.0)
        raise NotEnoughTimeError(table.minutes, minutes_needed(recipe, besides, step, clock.choosing is not None))
    if table.steps is None:
        steps = WORTHWHILE if step == 0 else max(LEAST, int(left / step))
        every = min(table.plan.validate_every, max(LEAST_BETWEEN, steps // VALIDATIONS))
        planned = replace(table.plan, validate_every=every)
        recipe = replace(recipe, train=replace(recipe.train, steps=steps, epochs=None, plan=planned))
    assert recipe.train.steps is not None
    whole = build.plan(recipe, recipe.train.steps, left, len(loop.sampler))
    return Planned(recipe, replace(whole, flexible=table.steps is None))


def _rate_on_features(loop: Loop, rate: float) -> float:
    """Images per second of what learns on features; `rate`: of the whole network, infinite if only the head learns."""
    if rate == math.inf or not isinstance(loop.dataset, FeatureViews):
        return rate
    inputs = loop.prepare(loop.dataset.batch(range(min(16, len(loop.dataset)))).image).to(loop.device)
    with evaluating(loop.network), torch.no_grad():
        loop.network(inputs)
        start = time.monotonic()
        loop.network(inputs)
    return len(inputs) / (time.monotonic() - start)


def _with_fewer_blends(recipe: Recipe, each: float) -> Recipe:
    """As many shares of the trained weights as there is time to try, spread evenly over those of the recipe."""
    shares, seconds = recipe.train.blend, BLENDING * 60 * (recipe.train.minutes or 0.0)
    count = max(1, int(seconds / each)) if each > 0 else len(shares)
    if count >= len(shares):
        return recipe
    kept = tuple(shares[(2 * number + 1) * len(shares) // (2 * count)] for number in range(count))
    return replace(recipe, train=replace(recipe.train, blend=kept))


def seconds_after(recipe: Recipe, parts: Parts, rate: float) -> float:
    """What follows the training and its blends: the candidates, the test images."""
    best, held = recipe.train.deliver == "best", 0 if parts.validation is None else len(parts.validation)
    count = held + min(AFTER, len(parts.train)) if best else 0
    tests = len(parts.test) + sum(len(part) for _, part in parts.others)
    seconds = (count + tests) / rate
    if best and by_graph(recipe, tests):
        seconds = min(seconds, seconds / 2 + EXPORT)
    return seconds + PER_QUERY * tests


def by_graph(recipe: Recipe, tests: int) -> bool:
    """Whether so many test images are worth the export of a trained network, which then computes all that follows."""
    return has_onnx() and tests >= WORTH_EXPORTING and recipe.model.architecture.backbone not in SMALL


def minutes_needed(recipe: Recipe, besides: float, step: float, choosing: bool) -> int:
    """Whole minutes in which a worthwhile number of steps fit, with `besides` seconds for everything else.

    The choice of a network, if there is one, and the blends take shares of the minutes, however many these are.
    """
    share = SPARE - (CHOOSING if choosing else 0.0) - (BLENDING if recipe.train.blend else 0.0)
    return max(1, math.ceil((besides + WORTHWHILE * step) / 60 / share))


def decided(run: OpenRun, recipe: Recipe, loop: Loop, step: int) -> Planned | None:
    """The plan that a run resumed at `step` follows, whatever the clock says now."""
    made = run.decisions.get("plan")
    if made is None or recipe.train.steps is None:  # its recipe is written last: without steps, it was killed before
        return None
    steps = dict(made["steps"])
    current = steps[max(at for at in steps if at <= step)]
    plan = build.plan(recipe, current, made["seconds"], len(loop.sampler))
    later = {at: count for at, count in steps.items() if at > step}
    return Planned(recipe, replace(plan, flexible=made["flexible"]), later)


def decide(run: OpenRun, recipe: Recipe, plan: Plan) -> None:
    """Keep a new plan, if the clock has made it, and announce it."""
    event: dict[str, Any] = {"event": "plan", "steps": plan.steps, "seconds": plan.seconds, "seed": plan.seed}
    if plan.seconds is not None:
        made = {"seconds": plan.seconds, "flexible": plan.flexible, "steps": [[0, plan.steps]]}
        run.decisions.make("plan", made)
    if plan.flexible:
        minutes = f"{recipe.train.minutes:g} minutes"
        text = f"about {plan.steps:,} steps in {plan.seconds:,.0f} s of the {minutes}; planned again as it runs"
        event |= {"flexible": True, "text": text}
    run.tell(event)


def pace(run: OpenRun, later: Mapping[int, int]) -> Pace:
    """The pace of a training that keeps its plans among the decisions of the run; `later`: those it made before."""

    def keep(step: int, steps: int) -> None:
        made = run.decisions.get("plan")
        run.decisions.make("plan", made | {"steps": [*made["steps"], [step, steps]]})

    return Pace(planned=later, keep=keep)


def decide_against(run: OpenRun, recipe: Recipe, needed: int) -> None:
    """Decide that there is no time to train, for a resumed run as well."""
    run.decisions.make("minutes_needed", needed)
    text = f"{recipe.train.minutes:g} minutes are too short to train: fine-tuning would need about {needed} minutes"
    run.tell({"event": "plan", "steps": 0, "seconds": 0.0, "seed": recipe.seed, "minutes": needed, "text": text})
