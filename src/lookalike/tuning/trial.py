"""One point of the search: a model per fold of the train classes, judged on the fold that was held out.

Musgrave, Belongie, Lim: A Metric Learning Reality Check, ECCV 2020 (SPEC G.2): settings are chosen by validation
classes. The test images are never looked at here.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from lookalike.data import Dataset
from lookalike.errors import check
from lookalike.files import write_text
from lookalike.fit.stages import Stages
from lookalike.fit.summary import header
from lookalike.recipe import Recipe, of_tree, to_toml, tree
from lookalike.recipe.protocol import tasks
from lookalike.runs import checkpoint
from lookalike.runs.folder import RunFolder
from lookalike.runs.log import Event, Watcher, read_log
from lookalike.training import to_all, train
from lookalike.training.run import Stop

Report = Callable[[int, int, float], None]  # fold (from 0), step, mean of the best so far


def judge(dataset: Dataset, recipe: Recipe, place: Path, report: Report, tell: Watcher, stop: Stop) -> float:
    """The mean over folds of the best validation figure; finished folds in `place` are kept."""
    values: list[float] = []
    for number, task in enumerate(tasks(recipe)):
        said = _reporting(report, number, list(values), recipe.train.plan.select)
        values.append(_fold(dataset, task.recipe, place / (task.name or "fold"), to_all(said, tell), stop))
    return sum(values) / len(values)


def _reporting(report: Report, number: int, before: list[float], select: str) -> Watcher:
    best = float("-inf")

    def told(event: Event) -> None:
        nonlocal best
        if event["event"] == "validation":
            best = max(best, float(event[select]))
            report(number, int(event["step"]), (sum(before) + best) / (len(before) + 1))

    return told


def _fold(dataset: Dataset, recipe: Recipe, path: Path, tell: Watcher, stop: Stop) -> float:
    """One training up to its last validation, from wherever its checkpoint stands; the weights are not kept."""
    folder = RunFolder(path)
    if folder.value.is_file():
        return float(json.loads(folder.value.read_text(encoding="utf-8")))
    with folder.claimed():
        run = folder.begin("either", to_toml(recipe, header()), tell)
        for event in read_log(folder.log).of("validation"):
            tell(event)
        return _trained(dataset, Stages(of_tree(tree(folder.recipe)), folder, run.tell), stop)


def _trained(dataset: Dataset, stages: Stages, stop: Stop) -> float:
    folder = stages.folder
    divided = stages.part(dataset)
    model, loop, plan = stages.begin(divided, checkpoint.exists(folder.checkpoint))
    validate = stages.validation(model, divided)
    check(validate is not None, "there are no validation classes to search by: set protocol.folds lower")
    ending = train(loop, plan, validate=validate, folder=folder.checkpoint, tell=stages.tell, stop=stop)
    found = ending.best[stages.recipe.train.plan.select]
    write_text(folder.value, json.dumps(found))
    shutil.rmtree(folder.checkpoint, ignore_errors=True)
    return found
