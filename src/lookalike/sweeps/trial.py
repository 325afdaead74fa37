"""One trial of a sweep: a recipe in a folder of its own, begun or resumed, until it is proved or only validated.

A study wants figures on test; a search for settings must not look there. It judges by the folds of the train classes
(Musgrave, Belongie, Lim: A Metric Learning Reality Check, ECCV 2020 [math G.2]): a model per fold, measured on the fold
that was held out. Both train as `fit` does. Only the numbers are kept.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path

from lookalike.cache import remembered
from lookalike.data import Dataset
from lookalike.errors import check
from lookalike.files import write_text
from lookalike.fit import run_recipe, stages
from lookalike.fit.fit import stoppable
from lookalike.fit.plan import RunClock
from lookalike.fit.run import Conditions, Run, begin_or_resume, train_recipe
from lookalike.recipe import Recipe
from lookalike.recipe.protocol import tasks
from lookalike.runs import RunFolder
from lookalike.runs.finished import NamedResult, save_results
from lookalike.runs.log import Event, Watcher, read_log, to_all
from lookalike.training.train import Stop

FORWARDED = ("progress", "step", "health")  # to those who watch a sweep; the rest is in the log of each trial
SAVE_EVERY = 20.0  # seconds; a head that validates many times a second would spend a quarter of its time on checkpoints
Report = Callable[[int, int, float], None]  # fold (from 0), step, mean of the best so far


def until_proved(dataset: Dataset, recipe: Recipe, folder: RunFolder, tell: Watcher, stop: Stop) -> Run:
    """The run of a recipe, or its several, in a folder that is ours."""
    watch = stoppable(quiet(tell), stop)
    opened, own = begin_or_resume(folder, recipe, watch)
    clock = RunClock(time.monotonic(), save_every=SAVE_EVERY)
    images = remembered("images", f"{id(dataset)} {own.images}", lambda: stages.decode(dataset, own, opened))
    run = run_recipe(own, images, opened, Conditions(clock, watch, stop, full=False))
    if not folder.measured.is_file():  # of several folds, each has measured its own
        rows = [NamedResult(entry.name, entry.role, entry.optimistic, entry.result) for entry in run.entries]
        save_results(folder, rows)
    folder.drop_weights()
    return run


def until_validated(dataset: Dataset, recipe: Recipe, place: Path, report: Report, tell: Watcher, stop: Stop) -> float:
    """The mean over folds of the best validation figure; finished folds in `place` are kept."""
    values: list[float] = []
    for number, task in enumerate(tasks(recipe)):
        watch = to_all(_reporting(report, number, list(values), recipe.train.plan.select), quiet(tell))
        folder = RunFolder(place / (task.name or "fold"))
        if not folder.value.is_file():
            with folder.claimed():
                _validate(dataset, task.recipe, folder, stoppable(watch, stop), stop)
        values.append(float(json.loads(folder.value.read_text(encoding="utf-8"))))
    return sum(values) / len(values)


def _validate(dataset: Dataset, recipe: Recipe, folder: RunFolder, watch: Watcher, stop: Stop) -> None:
    """One training up to its last validation, in a folder that is ours."""
    run, recipe = begin_or_resume(folder, recipe, watch)
    for event in read_log(folder.log).of("validation"):
        watch(event)
    parts = stages.split(stages.decode(dataset, recipe, run), recipe)
    check(parts.validation is not None, "there are no validation classes to judge by: set protocol.folds lower")
    trained = train_recipe(recipe, parts, run, Conditions(RunClock.now(), watch, stop, full=False))
    write_text(folder.value, json.dumps(trained.ending.best[recipe.train.plan.select]))
    folder.drop_weights()


def quiet(tell: Watcher) -> Watcher:
    def forward(event: Event) -> None:
        if event["event"] in FORWARDED:
            tell(event)

    return forward


def _reporting(report: Report, number: int, before: list[float], select: str) -> Watcher:
    best = float("-inf")

    def watch(event: Event) -> None:
        nonlocal best
        if event["event"] == "validation":
            best = max(best, float(event[select]))
            report(number, int(event["step"]), (sum(before) + best) / (len(before) + 1))

    return watch
