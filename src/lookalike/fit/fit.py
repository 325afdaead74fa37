"""One run from what the user says to the report: begun or resumed, stopped where it is asked to."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from lookalike.errors import UserError, check
from lookalike.fit import marks, stages
from lookalike.fit.choose import Source, Start, again, choose
from lookalike.fit.choose_network import DECISION, choose_network, first_recipe
from lookalike.fit.defaults import missing_weights
from lookalike.fit.judge_network import as_files
from lookalike.fit.networks import cell_of
from lookalike.fit.plan import REPORT, RunClock
from lookalike.fit.result_content import command, header
from lookalike.fit.run import Conditions, Run
from lookalike.fit.sample import affordable
from lookalike.fit.several import run_recipe
from lookalike.recipe import Recipe, build, to_toml
from lookalike.runs import OpenRun, RunFolder, checkpoint
from lookalike.runs.folder import Intent
from lookalike.runs.log import Event, Watcher, ignore
from lookalike.training.train import Stop, StoppedError


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
    "train.minutes=10" change it. `audit` looks at all images first. With "data.marks=shop.index" what people marked
    there joins the images, and the index moves to the new model if that is better than the one in use.
    A recipe with several seeds or folds is several runs, each in a folder of its own within `out`. `resume` continues
    the run in `out`, `fresh` replaces it; `full=False` leaves out baselines and the report. `tell` is called with
    every event, `stop` after every step and throughout the other stages.
    """
    check(not (resume and fresh), "give --resume or --fresh, not both")
    clock, folder, tell = RunClock.now(REPORT if full else 0.0), RunFolder(Path(out)), stoppable(tell, stop)
    intent: Intent = "resume" if resume else "fresh" if fresh else "new"
    folder.check(intent)
    new = None if resume else choose(source, recipe, overrides)  # one that is refused leaves no folder
    with folder.claimed():
        start = new or again(folder, source, recipe, overrides)
        run = folder.begin(intent, to_toml(start.recipe, header()), tell)
        with unblocked(folder, resume):
            return _run(start, run, Conditions(clock, tell, stop, full), audit, recipe is None)


def _run(start: Start, run: OpenRun, conditions: Conditions, audit: bool, default: bool) -> Run:
    """A run in a folder that this process holds, from its images on."""
    dataset, recipe, model = start
    now = time.strftime("%Y-%m-%dT%H:%M:%S")
    words = {"data": dataset.summary(), "command": command(), "resumed": run.resumed}
    run.tell({"event": "start", "time": now} | words)
    run = _with_time_left(run, recipe, conditions.clock)
    advice = missing_weights(recipe) if default and not run.resumed else None
    if advice is not None:
        run.note(advice)
    taught = marks.read(recipe, run)
    dataset, marked = (dataset, set()) if taught is None else marks.add(dataset, taught, recipe, run)
    first = first_recipe(recipe, run)
    dataset = affordable(dataset, first, model if first == recipe else build.model(first), run)
    decoded = stages.decode(dataset, first, run)
    ready = stages.audit(dataset, decoded, run) if audit else decoded
    ready = ready if taught is None else marks.settle(ready, marked, taught, run)
    began = conditions.clock.passed
    chosen = choose_network(recipe, ready, run)
    if run.decisions.get(DECISION) is not None:
        clock = replace(conditions.clock, choosing=conditions.clock.passed - began)
        conditions = conditions._replace(clock=clock)
    if (chosen.model, chosen.images) != (recipe.model, recipe.images):
        model = build.model(chosen)
    if cell_of(chosen) != cell_of(first):
        ready = stages.decode(affordable(as_files(ready), chosen, model, run, "photos"), chosen, run)
    done = run_recipe(chosen, ready, run, conditions, model)
    compared = done.content.get("in_use", {"better": False})
    if compared["better"]:
        marks.move(compared["index"], run.folder.model, done.model, run)
    return done


def _with_time_left(run: OpenRun, recipe: Recipe, clock: RunClock) -> OpenRun:
    """The run, whose stages say how much of its minutes is left."""
    minutes = recipe.train.minutes
    if minutes is None:
        return run

    def tell(event: Event) -> None:
        left = {"seconds_left": max(0.0, 60 * minutes - clock.passed)} if event["event"] == "stage" else {}
        run.tell({**event, **left})

    return replace(run, tell=tell)


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


def stoppable(tell: Watcher, stop: Stop) -> Watcher:
    """A watcher that also stops a run between two stages and while one reports progress; all so far is on disk."""

    def watch(event: Event) -> None:
        tell(event)
        if event["event"] in ("stage", "progress") and stop():
            raise StoppedError(f"stopped while {event['name']}")

    return watch
