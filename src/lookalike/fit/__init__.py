"""The whole way from a folder of labelled images to a proven, saved model, as one function."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from lookalike.data import Dataset
from lookalike.errors import UserError, check
from lookalike.files import write_text
from lookalike.fit import stages
from lookalike.fit.choose import Source, again, choose
from lookalike.fit.defaults import fit_batches, missing_weights
from lookalike.fit.plan import REPORT, Clock
from lookalike.fit.result_content import command, header
from lookalike.fit.run import Conditions, Run, single
from lookalike.fit.sample import affordable
from lookalike.fit.several import several, together
from lookalike.models import Model
from lookalike.recipe import Recipe, build, to_toml
from lookalike.recipe.protocol import tasks
from lookalike.runs import OpenRun, RunFolder, checkpoint
from lookalike.runs.folder import Intent
from lookalike.runs.log import Event, Watcher, ignore
from lookalike.training.train import Stop, StoppedError

__all__ = ["Run", "fit", "run_recipe"]


class Start(NamedTuple):
    """The data, the recipe, and the untrained network where it is built already."""

    dataset: Dataset
    recipe: Recipe
    model: Model | None = None


def fit(
    source: Source = None,
    out: str | Path = "run",
    *,
    recipe: str | Path | Mapping[str, Any] | None = None,
    overrides: Sequence[str] = (),
    audit: bool = True,
    resume: bool = False,
    fresh: bool = False,
    full: bool = True,
    tell: Watcher = ignore,
    stop: Stop = lambda: False,
) -> Run:
    """Train on some classes, prove it on others, save everything to `out`.

    `source` is whatever `data.load` takes, or a Dataset; without it the recipe's own, or the embedded glyphs. Without a
    `recipe` (a TOML file, or its values) one is chosen from the images and from what is installed; `overrides` such as
    "train.minutes=10" change it. `audit` looks at all images first.
    A recipe with several seeds or folds is several runs, each in a folder of its own within `out`. `resume` continues
    the run in `out`, `fresh` replaces it; `full=False` leaves out baselines and the report. `tell` is called with
    every event, `stop` after every step and throughout the other stages.
    """
    check(not (resume and fresh), "give --resume or --fresh, not both")
    clock, folder, tell = Clock.now(REPORT if full else 0.0), RunFolder(Path(out)), stoppable(tell, stop)
    intent: Intent = "resume" if resume else "fresh" if fresh else "new"
    folder.check(intent)
    start = None if resume else prepare(source, recipe, overrides)  # one that is refused leaves no folder
    with folder.claimed():
        dataset, settled, model = start or Start(*again(folder, source, recipe, overrides))
        run = folder.begin(intent, to_toml(settled, header()), tell)
        with unblocked(folder, resume):
            return _run(Start(dataset, settled, model), run, Conditions(clock, tell, stop, full), audit, recipe is None)


def _run(start: Start, run: OpenRun, conditions: Conditions, audit: bool, default: bool) -> Run:
    """A run in a folder that is ours, from its images on."""
    dataset, settled, model = start
    now = time.strftime("%Y-%m-%dT%H:%M:%S")
    words = {"data": dataset.summary(), "command": command(), "resumed": run.resumed}
    run.tell({"event": "start", "time": now} | words)
    advice = missing_weights(settled) if default and not run.resumed else None
    if advice is not None:
        run.note(advice)
    model = model or build.model(settled)
    dataset = affordable(dataset, settled, model, run)
    decoded = stages.decode(dataset, settled, run)
    ready = stages.audit(dataset, decoded, run) if audit else decoded
    return run_recipe(Start(ready, settled, model), run, conditions)


@contextmanager
def unblocked(folder: RunFolder, resume: bool) -> Iterator[None]:
    """A run that is refused before it has trained anything leaves its folder free for the next attempt."""
    try:
        yield
    except UserError:
        several = any(folder.path.glob("*/recipe.toml"))  # each with what it has learnt
        if not resume and not several and not checkpoint.exists(folder.checkpoint):
            folder.clear()
        raise


def prepare(source: Source, recipe: str | Path | Mapping[str, Any] | None, overrides: Sequence[str]) -> Start:
    """What a new run begins with; everything that can be known to be wrong without reading the images is refused."""
    dataset, settled = choose(source, recipe, overrides)
    return Start(dataset, settled, build.model(settled))


def run_recipe(start: Start, run: OpenRun, conditions: Conditions) -> Run:
    """The one run, or the several, that a recipe stands for: split the classes of decoded images, train and prove.

    `start` has the data and the recipe, `run` is its open folder, `conditions` are its clock, watcher and end.
    """
    parts = stages.split(start.dataset, tasks(start.recipe)[0].recipe)
    recipe = fit_batches(start.recipe, parts.train)
    todo = tasks(recipe)
    if len(todo) == 1:
        return single(recipe, start.model, parts, run, conditions)
    recipe = replace(recipe, train=replace(recipe.train, deliver="trained"))  # one of each seed can be put together
    todo = tasks(recipe)
    write_text(run.folder.recipe, to_toml(recipe, header()))
    several(todo, start.dataset, parts, run, conditions)
    return together(recipe, todo, parts, run, conditions.full)


def stoppable(tell: Watcher, stop: Stop) -> Watcher:
    """A watcher that also stops a run between two stages and while one reports progress; all so far is on disk."""

    def watch(event: Event) -> None:
        tell(event)
        if event["event"] in ("stage", "progress") and stop():
            raise StoppedError(f"stopped while {event['name']}")

    return watch
