"""One run from split classes to proven figures, and what it leaves behind."""

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from lookalike.data import Dataset
from lookalike.evaluation import Result
from lookalike.fit import stages, taught_labels
from lookalike.fit.best_model import best_model, judges_candidates
from lookalike.fit.defaults import fit_batches
from lookalike.fit.plan import RunClock
from lookalike.fit.prove import prove
from lookalike.fit.refit import refit
from lookalike.fit.result_content import header
from lookalike.fit.train_model import TrainedModel, leave_untrained, train_model
from lookalike.models import Model
from lookalike.protocols.class_disjoint import Parts
from lookalike.protocols.unseen import Judged
from lookalike.recipe import Recipe, build, of_tree, to_toml, tree
from lookalike.runs import OpenRun, RunFolder
from lookalike.runs.log import Watcher
from lookalike.training.train import Ending, Stop


@dataclass(frozen=True)
class Run:
    """A finished run: its `folder` and `ending`, the model, and how good it is on unseen classes beside its baselines.

    Of several seeds or folds `model` and `entries` are those of the first seed; `content` has all of them.
    """

    folder: Path
    model: Model
    entries: tuple[Judged, ...]  # the model first, then the baselines
    ending: Ending

    @property
    def result(self) -> Result:
        """What `evaluate` measured of the model on unseen classes."""
        return self.entries[0].result

    @property
    def report(self) -> Path:
        """Where report.html is."""
        return RunFolder(self.folder).report

    @property
    def content(self) -> dict[str, Any]:
        """The content of result.json."""
        content: dict[str, Any] = json.loads(RunFolder(self.folder).result.read_text(encoding="utf-8"))
        return content


class Conditions(NamedTuple):
    """What a run is made under: its clock, who watches and may stop it, and whether it has baselines and a report."""

    clock: RunClock
    tell: Watcher
    stop: Stop
    full: bool


def begin_or_resume(folder: RunFolder, recipe: Recipe, tell: Watcher) -> tuple[OpenRun, Recipe]:
    """A run in a folder that is ours. It follows the recipe in its folder, which the clock may have completed."""
    run = folder.begin("either", to_toml(recipe, header()), tell)
    return run, of_tree(tree(folder.recipe))


def prove_recipe(
    recipe: Recipe,
    parts: Parts,
    run: OpenRun,
    conditions: Conditions,
    model: Model | None = None,
    everything: Dataset | None = None,
) -> Run:
    """One training from a recipe, and what it is worth on the test classes; `everything`: what it is refitted to."""
    trained = train_recipe(recipe, parts, run, conditions, model)
    again = None
    if recipe.train.refit_on_all and everything is not None:
        again = partial(refit, trained, everything, parts, run, conditions.stop)
    entries = prove(trained, parts, run, conditions.full, again)
    delivered = Model.load(run.folder.model) if again is not None else trained.delivered or trained.model
    return Run(run.folder.path, delivered, tuple(entries), trained.ending)


def train_recipe(
    recipe: Recipe, parts: Parts, run: OpenRun, conditions: Conditions, model: Model | None = None
) -> TrainedModel:
    """One training from a recipe, up to the weights that validate best, as every run, fold, cell and trial does it."""
    stages.announce(parts, recipe, run)
    one_label = parts.train.sets is None  # the candidates that need no training read classes
    make = best_model if judges_candidates(recipe) and one_label else train_model
    if recipe.train.deliver == "untrained":
        make = leave_untrained
    network = model or build.model(recipe)
    if make is best_model or recipe.train.suspects is not None:
        parts = taught_labels.settle(recipe, network, parts, run)
    recipe = fit_batches(recipe, parts.train)
    return make(recipe, network, parts, run, conditions.clock, conditions.stop)
