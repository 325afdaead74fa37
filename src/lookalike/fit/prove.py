"""The end of a run: measure the model on unseen classes, save it, and write down every figure."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lookalike import report
from lookalike.data import Dataset
from lookalike.evaluation import Result
from lookalike.features import embed, embed_features
from lookalike.files import write_text
from lookalike.fit import marks
from lookalike.fit.plan import by_graph
from lookalike.fit.prepare import backbone_features, embeddings
from lookalike.fit.refit import SENTENCE
from lookalike.fit.result_content import command, content
from lookalike.fit.train_model import TrainedModel, cached_features, weights_of
from lookalike.fit.verdict import verdict
from lookalike.models import Model
from lookalike.progress import Progress
from lookalike.protocols.class_disjoint import Parts
from lookalike.protocols.unseen import Judged, baselines, best_of_each, gains, judge
from lookalike.recipe import Recipe, build
from lookalike.recipe.protocol import measure
from lookalike.runs import OpenRun
from lookalike.runs.embeddings import save_embeddings
from lookalike.runs.finished import NamedResult, save_results
from lookalike.runs.log import read_log
from lookalike.search.calibration.kept import calibrate_run, promise_of_run
from lookalike.training.peak_memory import peak_memory
from lookalike.training.train import Ending

SHOWN = ("recall@1", "recall@10", "r_precision", "map@r", "map@1000")  # in the model's card, and kept per query


def prove(
    trained: TrainedModel, parts: Parts, run: OpenRun, full: bool, again: Callable[[], Model] | None = None
) -> list[Judged]:
    """The model on its test sets; with `full` also its baselines and the report. The folder keeps everything.

    `again` makes the model that is handed over once this one is proven.
    """
    model, recipe, network = trained.delivered or trained.model, trained.recipe, trained.model
    entries = list(_evaluations(trained, parts, run))
    if full:
        run.stage("evaluating the baselines")
        with weights_of(network.embedder, trained.untrained):
            entries += evaluate_baselines(recipe, network, network, parts.test, cached=trained.choice is not None)
    taught = marks.read(recipe, run)
    used = marks.in_use(taught, parts.test, measure(recipe), recipe.evaluation.metrics)
    entries += [] if used is None else [used]
    deliver(run, model, entries[0].result)
    differences = gains(entries)
    words = verdict(trained, parts, entries, differences, run)
    compared = None
    if taught is not None and taught.index is not None and used is not None:
        compared = marks.comparison(entries[0], used, taught.index)
        words["sentences"].append(compared["sentence"])
        words["reasons"].append(compared["sentence"])
    if again is not None:
        deliver(run, again(), entries[0].result)
        words["sentences"].append(SENTENCE)
        words["reasons"].append(SENTENCE)
    save_embeddings(run.folder.test, entries[0].embeddings, parts.test)
    _save_results(run, recipe, entries)
    whole = content(recipe, model, parts, [entry.as_json() for entry in entries], differences)
    whole |= {"title": f"{parts.test.name}: {words['delivered']}", "training": _training(recipe, trained.ending)}
    calibration = _calibration(run, model, entries[0], parts.test) if full else None
    if calibration is not None:
        whole |= {"calibration": calibration}
        promise = promise_of_run(calibration)
        promised = f"In a search on new classes, {promise[0].lower()}{promise[1:]}"
        words["sentences"].append(promised)
        words["reasons"].append(promised)
    whole |= {} if compared is None else {"in_use": compared}
    write_result(run, whole | {"verdict": words})
    if full:
        write_report(run, parts.test, entries[0].result)
    return entries


def _calibration(run: OpenRun, model: Model, entry: Judged, test: Dataset) -> dict[str, Any] | None:
    """What a similarity means among the test images, for an index made from this run."""
    if test.roles is not None or test.sets is not None:
        return None
    run.stage("calibrating on unseen classes")
    labels = [test.label_names[label] for label in test.labels.tolist()]
    return calibrate_run(model, entry.embeddings.numpy(), labels)


def deliver(run: OpenRun, model: Model, result: Result) -> None:
    """Make a model the one that the run hands over, with its figures and its recipe."""
    metrics = {name: result[name] for name in SHOWN if name in result}
    replace(model, metrics=metrics, recipe=run.folder.recipe.read_text(encoding="utf-8")).save(run.folder.model)


def write_result(run: OpenRun, content: dict[str, Any]) -> None:
    """result.json; its command is the one that began the run: one that resumed it would not repeat it."""
    begun = (event["command"] for event in read_log(run.folder.log).of("start") if "command" in event)
    whole = content | {"command": next(begun, command())}
    write_text(run.folder.result, json.dumps(whole, indent=2, ensure_ascii=False))


def _evaluations(trained: TrainedModel, parts: Parts, run: OpenRun) -> Iterator[Judged]:
    model, recipe = trained.delivered or trained.model, trained.recipe
    metrics, evaluated = recipe.evaluation.metrics, measure(recipe)
    progress = run.stage("evaluating on unseen classes")
    vectors = _vectors(trained, model, parts.test, progress)
    main = evaluated("this model", "model", vectors, parts.test, model.geometry, metrics)
    if recipe.protocol.select == "test_max":
        main = replace(main, optimistic=True)
        yield main
        yield best_of_each(main, read_log(run.folder.log).of("validation"))
    else:
        yield main
    for name, test in parts.others:
        yield evaluated(
            f"this model, {name}", "model", embeddings(recipe, model, test, progress), test, model.geometry, metrics
        )
    if recipe.evaluation.train:
        vectors = embeddings(recipe, model, parts.train, progress)
        yield judge("train images", "train", vectors, parts.train, model.geometry, recipe.evaluation.train)


def _vectors(trained: TrainedModel, model: Model, dataset: Dataset, progress: Progress) -> Tensor:
    """The embeddings of a data set by the fastest way that gives them."""
    if trained.choice is None:
        return embeddings(trained.recipe, model, dataset, progress)
    if not trained.uses_training or by_graph(trained.recipe, len(dataset)):  # there are features, or a graph
        return embed_features(model, cached_features(model, dataset, progress))
    return embed(model, dataset, progress)


def evaluate_baselines(
    recipe: Recipe, model: Model, untrained: Model, test: Dataset, cached: bool = False
) -> list[Judged]:
    pretrained = recipe.model.weights is not None
    if pretrained and cached:
        before = cached_features(untrained, test)
    else:
        before = (backbone_features if pretrained else embeddings)(recipe, untrained, test)
    return baselines(before, pretrained, model.preprocessing, test, recipe.evaluation.metrics, measure(recipe))


def _save_results(run: OpenRun, recipe: Recipe, entries: Sequence[Judged]) -> None:
    """The figures, with the values of single queries for the metrics that are reported."""
    reported = recipe.evaluation.metrics or SHOWN
    rows = []
    for entry in entries:
        per_query = {name: values for name, values in entry.result.per_query.items() if name in reported}
        result = replace(entry.result, per_query=per_query)
        rows.append(NamedResult(entry.title, entry.role, entry.optimistic, result))
    save_results(run.folder, rows)


def _training(recipe: Recipe, ending: Ending) -> dict[str, Any]:
    facts = {name: value for name, value in asdict(ending).items() if name not in ("why", "best")}
    memory = peak_memory(build.device(recipe))
    facts |= {"stopped": ending.why, "seed": recipe.seed, "validation": dict(ending.best)}
    return facts | ({} if memory is None else {"memory": memory})


def write_report(run: OpenRun, test: Dataset, result: Result) -> None:
    """RUN/report.html from what the folder holds; `result` is that of test.npz, which need not be ranked again."""
    progress = run.stage("writing the report")
    # test.npz has the queries first, then the gallery
    rows = range(len(test)) if test.roles is None else torch.argsort((test.roles != 0).int(), stable=True).tolist()

    def picture(row: int) -> np.ndarray:
        return test.images.open(rows[row]).decode().permute(1, 2, 0).numpy()

    report.write(run.folder.path, picture, progress, result=result)
