"""One short training run for a comparison: a recipe on given parts of the data, without a report."""

import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lookalike import data
from lookalike.data import Dataset
from lookalike.evaluation import evaluate
from lookalike.features import embed
from lookalike.fit.plan import RunClock
from lookalike.fit.run import Conditions, begin_or_resume, train_recipe
from lookalike.models import Preprocessing
from lookalike.protocols.class_disjoint import Parts
from lookalike.recipe import Recipe, build
from lookalike.runs import RunFolder
from lookalike.runs.log import ignore

METRICS = ("recall@1", "map@r")


def decoded(dataset: Dataset, recipe: Recipe) -> Dataset:
    """The images at the size the recipe works with."""
    return data.decoded(dataset, build.views(recipe, Preprocessing()).preprocessing.resize or 256)


def trial(recipe: Recipe, divided: Parts) -> dict[str, Any]:
    """Train as the recipe says and measure on the test classes: metrics, values per query, seconds."""
    start = time.monotonic()
    recipe = replace(recipe, train=replace(recipe.train, deliver="trained"))
    with TemporaryDirectory() as place:
        run, recipe = begin_or_resume(RunFolder(Path(place)), recipe, ignore)
        trained = train_recipe(recipe, divided, run, Conditions(RunClock.now(), ignore, lambda: False, full=False))
    model = trained.model
    result = evaluate(
        embed(model, divided.test), divided.test.labels, metrics=[*METRICS, "rho"], normalise=model.geometry
    )
    return {
        "metrics": {name: result[name] for name in (*METRICS, "rho")},
        "per_query": {name: result.per_query[name].tolist() for name in METRICS},
        "steps": trained.ending.steps,
        "seconds": time.monotonic() - start,
    }
