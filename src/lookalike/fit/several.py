"""Several seeds or folds as one run: each in a folder of its own, finished ones are kept, then all are put together."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lookalike import data
from lookalike.data import Dataset
from lookalike.evaluation import Result
from lookalike.evaluation.statistics.seeds import averaged, difference, spread
from lookalike.files import write_text
from lookalike.fit.prove import baselines_of, write_page
from lookalike.fit.run import Run, one_of_several
from lookalike.fit.stages import Stages
from lookalike.fit.summary import content
from lookalike.models import Model
from lookalike.protocols.class_disjoint import Parts
from lookalike.protocols.cross_validation import side_by_side
from lookalike.protocols.unseen import OPTIMISTIC, Judged, judge
from lookalike.recipe import Recipe
from lookalike.recipe.protocol import Task, parts, tasks
from lookalike.runs.embeddings import load_embeddings, save_embeddings
from lookalike.runs.folder import RunFolder
from lookalike.runs.log import Watcher
from lookalike.runs.measured import NamedResult, load_results
from lookalike.training.run import Ending, Stop

SHOWN = ("recall@1", "map@r")  # with intervals


class Pooled(NamedTuple):
    """One row of the table: a result per seed."""

    name: str
    role: str
    optimistic: bool
    results: list[Result]

    def as_json(self) -> dict[str, Any]:
        found = {metric: spread(self.results, metric) for metric in self.results[0]}
        intervals = {name: found[name].over_queries for name in SHOWN if name in found and found[name].over_queries}
        told: dict[str, Any] = {
            "name": self.name, "role": self.role, "seeds": len(self.results), "intervals": intervals,
            "metrics": {metric: each.mean for metric, each in found.items()},
        }  # fmt: skip
        if len(self.results) > 1:
            told["std"] = {metric: each.std for metric, each in found.items()}
            told["over_seeds"] = {metric: each.over_seeds for metric, each in found.items()}
        return told | ({"optimistic": True} if self.optimistic else {})


def several(dataset: Dataset, stages: Stages, tell: Watcher, stop: Stop, full: bool) -> Run:
    """Do what is left to do, then put it together."""
    todo = tasks(stages.recipe)
    for number, task in enumerate(todo, start=1):
        place = stages.folder.path / task.name
        if not (place / "result.json").is_file():
            stages.note(f"run {number} of {len(todo)}: {task.name.replace('-', ' ')}")
            one_of_several(dataset, task.recipe, place, tell, stop)
    return together(dataset, stages, todo, full)


def together(dataset: Dataset, stages: Stages, todo: Sequence[Task], full: bool) -> Run:
    """All runs as one table: over folds first, then over seeds."""
    recipe, folder = stages.recipe, stages.folder
    first = folder.path / todo[0].name
    model, divided = Model.load(first / "model"), parts(todo[0].recipe, _decoded(stages, dataset))
    by_seed: dict[int, list[Path]] = {}
    for task in todo:
        by_seed.setdefault(task.recipe.seed, []).append(folder.path / task.name)
    joined = [_joined(recipe, places, model, divided) for places in by_seed.values()]
    rows = pooled([found for found, _ in joined])
    save_embeddings(folder.test, joined[0][1], divided.test)
    base = baselines_of(todo[0].recipe, model, divided.test) if full else []
    told = content(recipe, model, divided, [row.as_json() for row in rows], _gains(rows[0], base))
    told["results"] += [entry.as_json() for entry in base]
    told["runs"] = [_told(folder.path / task.name) for task in todo]
    seconds = sum(run["training"]["seconds"] for run in told["runs"])
    steps = sum(run["training"]["steps"] for run in told["runs"])
    told["training"] = {"runs": len(todo), "steps": steps, "seconds": seconds, "seed": recipe.seed}
    write_text(folder.result, json.dumps(told, indent=2, ensure_ascii=False))
    if full:
        write_page(stages, divided.test)
    entries = [Judged(row.name.removesuffix(OPTIMISTIC).strip(), row.role, joined[0][1], row.results[0], row.optimistic)
               for row in rows]  # fmt: skip
    return Run(folder.path, model, (*entries, *base), Ending(f"{len(todo)} runs are done", steps, 0, {}, seconds))


def _decoded(stages: Stages, dataset: Dataset) -> Dataset:
    return data.decoded(dataset, stages.side(), progress=stages.stage("decoding the images"))


def _joined(recipe: Recipe, places: Sequence[Path], model: Model, divided: Parts) -> tuple[list[NamedResult], Any]:
    """The rows of one seed, and the embeddings of the main one: its folds side by side, and their mean."""
    runs = [load_results(RunFolder(place)) for place in places]
    vectors = [load_embeddings(place / "test.npz", divided.test) for place in places]
    if len(places) == 1:
        return runs[0], vectors[0]
    width, count = vectors[0].shape[1], len(places)
    whole = side_by_side(vectors, model.geometry)
    name = f"{width * count}-D, {count} models side by side"
    both = judge(name, "model", whole, divided.test, model.geometry, recipe.evaluation.metrics)
    rows = [NamedResult(name, "model", False, both.result)]
    for same in zip(*runs, strict=True):
        mean = f"{width}-D, mean of {count} models"
        if same[0].role != "train":  # every fold has other train images
            renamed = same[0].name.replace("this model", mean)
            rows.append(NamedResult(renamed, same[0].role, same[0].optimistic, averaged([row.result for row in same])))
    return rows, whole


def pooled(seeds: Sequence[Sequence[NamedResult]]) -> list[Pooled]:
    """Equal rows of all seeds."""
    return [
        Pooled(same[0].name, same[0].role, same[0].optimistic, [row.result for row in same])
        for same in zip(*seeds, strict=True)
    ]


def _gains(best: Pooled, base: Sequence[Judged]) -> list[dict[str, Any]]:
    found = []
    for other in base:
        for metric in SHOWN:
            if metric in best.results[0] and metric in other.result:
                gap = difference(best.results, [other.result] * len(best.results), metric)
                told = {"against": other.name, "metric": metric, "mean": gap.mean, "interval": gap.over_queries}
                found.append(told | ({"over_seeds": gap.over_seeds} if gap.over_seeds else {}))
    return found


def _told(place: Path) -> dict[str, Any]:
    """A run in short."""
    content = json.loads((place / "result.json").read_text(encoding="utf-8"))
    return {"folder": place.name, "training": content["training"], "metrics": content["results"][0]["metrics"]}
