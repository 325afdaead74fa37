"""One short training run for a comparison: a recipe on given parts of the data, without a folder or a report."""

import copy
import time
from typing import Any

from lookalike import data
from lookalike.data import Dataset
from lookalike.evaluation import evaluate
from lookalike.features import embed
from lookalike.fit.defaults import fit_batches
from lookalike.fit.prepare import Validation, fill_bank, prepare_head
from lookalike.models import Preprocessing
from lookalike.protocols.class_disjoint import Parts
from lookalike.recipe import Recipe, build
from lookalike.training import train
from lookalike.training.blend import blend

METRICS = ("recall@1", "map@r")


def decoded(dataset: Dataset, recipe: Recipe) -> Dataset:
    """The images at the size the recipe works with."""
    return data.decoded(dataset, build.views(recipe, Preprocessing()).preprocessing.resize or 256)


def trial(recipe: Recipe, divided: Parts) -> dict[str, Any]:
    """Train as the recipe says and measure on the test classes: metrics, values per query, seconds."""
    start = time.monotonic()
    recipe = fit_batches(recipe, divided.train)
    model = build.model(recipe)
    loop = build.loop(recipe, model, divided.train)
    prepare_head(recipe, model, divided.train)
    fill_bank(recipe, loop, model, divided.train)
    validate = None if divided.validation is None else Validation(recipe, model, divided.validation)
    before = copy.deepcopy(model.embedder.state_dict())
    ending = train(loop, build.plan(recipe, loop.schedule.steps), validate=validate)
    if validate is not None and recipe.train.blend:
        blend(model.embedder, before, recipe.train.blend, validate, recipe.train.plan.select)
    result = evaluate(
        embed(model, divided.test), divided.test.labels, metrics=[*METRICS, "rho"], normalise=model.geometry
    )
    return {
        "metrics": {name: result[name] for name in (*METRICS, "rho")},
        "per_query": {name: result.per_query[name].tolist() for name in METRICS},
        "steps": ending.steps,
        "seconds": time.monotonic() - start,
    }
