"""The end of a run: measure on unseen classes, save the model, write down what was found."""

import json
from collections.abc import Iterator
from dataclasses import asdict, replace

import numpy as np
import torch

from lookalike import report
from lookalike.data import Dataset
from lookalike.evaluation import Result
from lookalike.features import embed
from lookalike.files import write_text
from lookalike.fit.stages import Stages
from lookalike.fit.summary import content
from lookalike.models import Model
from lookalike.protocols.class_disjoint import Parts
from lookalike.protocols.unseen import Judged, baselines, best_of_each, gains, judge
from lookalike.recipe import Recipe, build
from lookalike.recipe.protocol import measure
from lookalike.runs.embeddings import save_embeddings
from lookalike.runs.folder import RunFolder
from lookalike.runs.log import read_log
from lookalike.runs.measured import NamedResult, save_results
from lookalike.training.peak_memory import peak_memory
from lookalike.training.run import Ending

SHOWN = ("recall@1", "recall@10", "r_precision", "map@r", "map@1000")  # in the model's card, and kept per query


def prove(stages: Stages, model: Model, divided: Parts, ending: Ending, full: bool) -> list[Judged]:
    """The model on its test sets; with `full` also its baselines and the page. Everything is written to the folder."""
    recipe, folder = stages.recipe, stages.folder
    entries = list(_of_model(stages, model, divided))
    if full:
        stages.stage("evaluating the baselines")
        entries += baselines_of(recipe, model, divided.test)
    model.metrics = {name: entries[0].result[name] for name in SHOWN if name in entries[0].result}
    model.recipe = folder.recipe.read_text(encoding="utf-8")
    model.save(folder.model)
    save_embeddings(folder.test, entries[0].embeddings, divided.test)
    save_results(
        folder, [NamedResult(each.title, each.role, each.optimistic, _kept(each.result, recipe)) for each in entries]
    )
    training = asdict(ending) | {"stopped": ending.why, "seed": recipe.seed, "validation": dict(ending.best)}
    told = content(recipe, model, divided, [entry.as_json() for entry in entries], gains(entries))
    told["training"] = {name: value for name, value in training.items() if name not in ("why", "best")}
    most = peak_memory(build.device(recipe))
    told["training"] |= {} if most is None else {"memory": most}
    write_text(folder.result, json.dumps(told, indent=2, ensure_ascii=False))
    if full:
        write_page(stages, divided.test)
    return entries


def _of_model(stages: Stages, model: Model, divided: Parts) -> Iterator[Judged]:
    recipe, geometry = stages.recipe, model.geometry
    metrics, how = recipe.evaluation.metrics, measure(recipe)
    progress = stages.stage("evaluating on unseen classes")
    chosen = how("this model", "model", embed(model, divided.test, progress), divided.test, geometry, metrics)
    if recipe.protocol.select == "test_max":
        chosen = replace(chosen, optimistic=True)
        yield chosen
        yield best_of_each(chosen, read_log(stages.folder.log).of("validation"))
    else:
        yield chosen
    for name, test in divided.others:
        yield how(f"this model, {name}", "model", embed(model, test, progress), test, geometry, metrics)
    if recipe.evaluation.train:
        seen = divided.train
        yield judge("train images", "train", embed(model, seen, progress), seen, geometry, recipe.evaluation.train)


def baselines_of(recipe: Recipe, model: Model, test: Dataset) -> list[Judged]:
    pretrained = recipe.model.weights is not None
    return baselines(model, build.model(recipe), pretrained, test, recipe.evaluation.metrics, measure(recipe))


def _kept(result: Result, recipe: Recipe) -> Result:
    """The figures, with the values of single queries for the metrics that are asked for."""
    wanted = recipe.evaluation.metrics or SHOWN
    return replace(result, per_query={name: result.per_query[name] for name in wanted if name in result.per_query})


def write_page(stages: Stages, test: Dataset) -> None:
    """RUN/report.html from what the folder holds."""
    progress = stages.stage("writing the report")
    folder: RunFolder = stages.folder
    # test.npz has the queries first, then the gallery
    rows = range(len(test)) if test.roles is None else torch.argsort((test.roles != 0).int(), stable=True).tolist()

    def picture(row: int) -> np.ndarray:
        return test.images.open(rows[row]).decode().permute(1, 2, 0).numpy()

    report.write(folder.path, picture, progress=progress)
