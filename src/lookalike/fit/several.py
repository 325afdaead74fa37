"""The run of a recipe, or its runs: each seed and fold in a folder of its own, then all are put together."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from torch import Tensor

from lookalike.data import Dataset
from lookalike.evaluation import Result
from lookalike.evaluation.statistics.seeds import averaged, difference, spread
from lookalike.files import write_text
from lookalike.fit import stages
from lookalike.fit.defaults import fit_batches
from lookalike.fit.plan import RunClock
from lookalike.fit.prove import evaluate_baselines, write_report, write_result
from lookalike.fit.result_content import content, header
from lookalike.fit.run import Conditions, Run, begin_or_resume, prove_recipe
from lookalike.models import Model
from lookalike.protocols.class_disjoint import Parts
from lookalike.protocols.cross_validation import side_by_side
from lookalike.protocols.unseen import OPTIMISTIC, Judged, judge
from lookalike.recipe import Recipe, build, to_toml
from lookalike.recipe.protocol import Task, tasks
from lookalike.runs import OpenRun, RunFolder
from lookalike.runs.embeddings import load_embeddings, save_embeddings
from lookalike.runs.finished import NamedResult, load_results
from lookalike.training.train import Ending

SHOWN = ("recall@1", "map@r")  # with intervals


class Pooled(NamedTuple):
    """One row of the table: a result per seed."""

    name: str
    role: str
    optimistic: bool
    results: list[Result]

    def as_json(self) -> dict[str, Any]:
        spreads = {metric: spread(self.results, metric) for metric in self.results[0]}
        intervals = {
            name: spreads[name].over_queries for name in SHOWN if name in spreads and spreads[name].over_queries
        }
        row: dict[str, Any] = {
            "name": self.name,
            "role": self.role,
            "seeds": len(self.results),
            "intervals": intervals,
            "metrics": {metric: each.mean for metric, each in spreads.items()},
        }
        if len(self.results) > 1:
            row["std"] = {metric: each.std for metric, each in spreads.items()}
            row["over_seeds"] = {metric: each.over_seeds for metric, each in spreads.items()}
        return row | ({"optimistic": True} if self.optimistic else {})


class Seed(NamedTuple):
    """The results of one seed over all its folds, and the embeddings that the first of them was measured on."""

    results: list[NamedResult]
    embeddings: Tensor


def run_recipe(
    recipe: Recipe, dataset: Dataset, run: OpenRun, conditions: Conditions, model: Model | None = None
) -> Run:
    """The one run, or the several, that a `recipe` stands for: split the classes of a `dataset`, train and prove.

    The images are decoded, `run` is the open folder, `conditions` are its clock, watcher and end. An untrained `model`
    need not be built again.
    """
    parts = stages.split(dataset, tasks(recipe)[0].recipe)
    if len(tasks(recipe)) == 1:
        return prove_recipe(recipe, parts, run, conditions, model, dataset)
    recipe = fit_batches(recipe, parts.train)
    if recipe.train.deliver == "best":  # one of each seed can be put together
        recipe = replace(recipe, train=replace(recipe.train, deliver="trained"))
    write_text(run.folder.recipe, to_toml(recipe, header()))
    todo = tasks(recipe)
    for number, task in enumerate(todo, start=1):
        folder = _folder(run, task)
        if folder.finished:
            continue
        run.note(f"run {number} of {len(todo)}: {task.name.replace('-', ' ')}")
        with folder.claimed():
            own, settled = begin_or_resume(folder, task.recipe, conditions.tell)
            alone = conditions._replace(clock=RunClock.now(), full=False)
            prove_recipe(settled, parts if number == 1 else stages.split(dataset, settled), own, alone)
    untrained = (model or build.model(todo[0].recipe)) if conditions.full else None
    return together(recipe, todo, parts, run, untrained)


def _folder(run: OpenRun, task: Task) -> RunFolder:
    return RunFolder(run.folder.path / task.name)


def together(recipe: Recipe, todo: Sequence[Task], parts: Parts, run: OpenRun, untrained: Model | None) -> Run:
    """All runs as one table: over folds first, then over seeds; baselines and a report with the `untrained` network."""
    model = Model.load(_folder(run, todo[0]).model)
    seeds = [_joined(recipe, folders, model, parts) for folders in _by_seed(run, todo)]
    rows = _pooled([seed.results for seed in seeds])
    embeddings = seeds[0].embeddings
    save_embeddings(run.folder.test, embeddings, parts.test)
    base = [] if untrained is None else evaluate_baselines(todo[0].recipe, model, untrained, parts.test)
    whole = content(recipe, model, parts, [row.as_json() for row in rows], _gains(rows[0], base))
    whole["results"] += [entry.as_json() for entry in base]
    whole["runs"] = [_in_short(_folder(run, task)) for task in todo]
    seconds, steps = (sum(each["training"][name] for each in whole["runs"]) for name in ("seconds", "steps"))
    whole["training"] = {"runs": len(todo), "steps": steps, "seconds": seconds, "seed": recipe.seed}
    write_result(run, whole)
    if untrained is not None:
        write_report(run, parts.test, rows[0].results[0])
    entries = [
        Judged(row.name.removesuffix(OPTIMISTIC).strip(), row.role, embeddings, row.results[0], row.optimistic)
        for row in rows
    ]
    ending = Ending(f"{len(todo)} runs are done", steps, 0, {}, seconds)
    return Run(run.folder.path, model, (*entries, *base), ending)


def _by_seed(run: OpenRun, tasks: Sequence[Task]) -> list[list[RunFolder]]:
    folders: dict[int, list[RunFolder]] = {}
    for task in tasks:
        folders.setdefault(task.recipe.seed, []).append(_folder(run, task))
    return list(folders.values())


def _joined(recipe: Recipe, folders: Sequence[RunFolder], model: Model, parts: Parts) -> Seed:
    """The folds of one seed: their embeddings side by side, and the mean of their figures."""
    runs = [load_results(folder) for folder in folders]
    vectors = [load_embeddings(folder.test, parts.test) for folder in folders]
    if len(folders) == 1:
        return Seed(runs[0], vectors[0])
    width, count = vectors[0].shape[1], len(folders)
    wide = side_by_side(vectors, model.geometry)
    name = f"{width * count}-D, {count} models side by side"
    joined = judge(name, "model", wide, parts.test, model.geometry, recipe.evaluation.metrics)
    results = [NamedResult(name, "model", False, joined.result)]
    for same in zip(*runs, strict=True):
        if same[0].role != "train":  # every fold has other train images
            mean = same[0].name.replace("this model", f"{width}-D, mean of {count} models")
            results.append(NamedResult(mean, same[0].role, same[0].optimistic, averaged([row.result for row in same])))
    return Seed(results, wide)


def _pooled(seeds: Sequence[Sequence[NamedResult]]) -> list[Pooled]:
    """The same row of all seeds."""
    return [
        Pooled(same[0].name, same[0].role, same[0].optimistic, [row.result for row in same])
        for same in zip(*seeds, strict=True)
    ]


def _gains(best: Pooled, baselines: Sequence[Judged]) -> list[dict[str, Any]]:
    differences = []
    for other in baselines:
        for metric in SHOWN:
            if metric in best.results[0] and metric in other.result:
                gap = difference(best.results, [other.result] * len(best.results), metric)
                gain = {"against": other.name, "metric": metric, "mean": gap.mean, "interval": gap.over_queries}
                differences.append(gain | ({"over_seeds": gap.over_seeds} if gap.over_seeds else {}))
    return differences


def _in_short(folder: RunFolder) -> dict[str, Any]:
    content = json.loads(folder.result.read_text(encoding="utf-8"))
    return {"folder": folder.path.name, "training": content["training"], "metrics": content["results"][0]["metrics"]}
