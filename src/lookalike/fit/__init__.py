"""The whole way from a folder of labelled images to a proven, saved model, as one function."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lookalike.data import Dataset
from lookalike.errors import check
from lookalike.fit.choose import Source, again, choose
from lookalike.fit.run import Run, single, stoppable
from lookalike.fit.several import several
from lookalike.fit.stages import PAGE, Stages
from lookalike.fit.summary import header
from lookalike.recipe import to_toml
from lookalike.recipe.defaults import missing_weights
from lookalike.recipe.protocol import tasks
from lookalike.runs.folder import Intent, RunFolder
from lookalike.runs.log import Watcher, ignore
from lookalike.training.run import Stop

__all__ = ["Run", "fit", "run_recipe"]


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
    recipe one is chosen from the images and from what is installed; `overrides` such as "train.minutes=10" change it.
    A recipe with several seeds or folds is several runs, each in a folder of its own within `out`. `resume` goes on
    with the run in `out`, `fresh` replaces it; `full=False` leaves out baselines and the report. `tell` hears what
    happens, `stop` is asked after every step and while the stages around training go on.
    """
    check(not (resume and fresh), "give --resume or --fresh, not both")
    began, folder, tell = time.monotonic(), RunFolder(Path(out)), stoppable(tell, stop)
    intent: Intent = "resume" if resume else "fresh" if fresh else "new"
    folder.check(intent)
    start = None if resume else choose(source, recipe, overrides)  # a refused one leaves no folder
    with folder.claimed():
        dataset, chosen = start or again(folder, source, recipe, overrides)
        run = folder.begin(intent, to_toml(chosen, header()), tell)
        stages = Stages(chosen, folder, run.tell, began)
        stages.reserved = PAGE if full else 0.0
        now = time.strftime("%Y-%m-%dT%H:%M:%S")
        stages.tell({"event": "start", "time": now, "data": dataset.summary(), "resumed": resume})
        lacking = missing_weights(dataset) if recipe is None and not resume else None
        if lacking is not None:
            stages.note(lacking)
        looked = stages.look(dataset) if audit else dataset
        return run_recipe(looked, stages, tell, stop, full)


def run_recipe(dataset: Dataset, stages: Stages, tell: Watcher, stop: Stop, full: bool) -> Run:
    """The one run, or the several, that a recipe stands for."""
    if len(tasks(stages.recipe)) > 1:
        return several(dataset, stages, tell, stop, full)
    return single(dataset, stages, stop, full)
