"""[protocol]: how the classes are split, how test images are measured, and the single runs that a recipe stands for.

A recipe with several seeds or folds is several runs. Each has a recipe of its own, with one seed and one fold, and can
be repeated alone.
"""

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from lookalike.data import Dataset
from lookalike.errors import check, unknown
from lookalike.protocols import class_disjoint, cross_validation, query_gallery, vehicle_id
from lookalike.protocols.class_disjoint import Parts
from lookalike.protocols.unseen import Measure, judge
from lookalike.recipe.settings import Recipe

BY_SHARE = {  # protocols that draw test and validation classes by share
    "class_disjoint": class_disjoint.parts,
    "query_gallery": query_gallery.parts,
    "vehicle_id": vehicle_id.parts,
}
CROSS = "cross_validation"
POSSIBLE: dict[str, tuple[Any, ...]] = {
    "name": (*BY_SHARE, CROSS),
    "select": ("validation", "test_max"),
    "gallery": ("all", "one_per_class"),
}


class Task(NamedTuple):
    """One run of several: the name of its folder, and its own recipe."""

    name: str
    recipe: Recipe


def check_protocol(recipe: Recipe) -> None:
    """Refuse an impossible protocol before any data are read."""
    table = recipe.protocol
    for key, possible in POSSIBLE.items():
        if getattr(table, key) not in possible:
            raise unknown(f"protocol.{key}", getattr(table, key), possible)
    for key in ("seeds", "repeats"):
        check(getattr(table, key) > 0, f"protocol.{key} must be at least 1, not {getattr(table, key)}")
    several = table.seeds > 1 or (table.name == CROSS and table.fold is None)
    check(not (several and recipe.train.refit_on_all), "train.refit_on_all is for one run: leave out seeds and folds")
    check(table.folds >= 2, f"protocol.folds must be at least 2, not {table.folds}")
    models = table.models or table.folds
    check(1 <= models <= table.folds, f"protocol.models is 1 to {table.folds} (the folds), not {models}")
    check(table.name == CROSS or table.fold is None, "protocol.fold is for cross_validation: leave it out")
    optimistic = table.name == CROSS and table.select == "test_max"
    check(not optimistic, "cross_validation validates on its folds: leave protocol.select at validation")
    check(
        table.gallery == "all" or table.name == "vehicle_id",
        "protocol.gallery=one_per_class is for vehicle_id: leave it out",
    )


def parts(recipe: Recipe, dataset: Dataset) -> Parts:
    """The train, validation and test classes of a single run; no class validates where test chooses the weights."""
    table, shares = recipe.protocol, recipe.data
    if table.name == CROSS:
        return cross_validation.parts(dataset, table.folds, table.fold or 1)
    validation = 0.0 if table.select == "test_max" else shares.validation
    return BY_SHARE[table.name](dataset, shares.test, validation, recipe.seed)


def measure(recipe: Recipe) -> Measure:
    """The function that measures embeddings of test images."""
    if recipe.protocol.gallery == "one_per_class":
        return partial(vehicle_id.judge_repeats, repeats=recipe.protocol.repeats)
    return judge


def tasks(recipe: Recipe) -> list[Task]:
    """The single runs of a recipe, seed by seed and fold by fold; a time budget is shared among them.

    >>> from lookalike.recipe.settings import Member, ProtocolSettings
    >>> plain = Recipe(Member("triplet"), Member("class_balanced"), protocol=ProtocolSettings(CROSS, seeds=2, models=2))
    >>> [task.name for task in tasks(plain)]
    ['seed-0-fold-1', 'seed-0-fold-2', 'seed-1-fold-1', 'seed-1-fold-2']
    """
    table = recipe.protocol
    folds: list[int | None] = [table.fold]
    if table.name == CROSS and table.fold is None:
        folds = list(range(1, (table.models or table.folds) + 1))
    seeds = range(recipe.seed, recipe.seed + table.seeds)
    runs = [(seed, fold) for seed in seeds for fold in folds]
    minutes = recipe.train.minutes
    length = replace(recipe.train, minutes=None if minutes is None else minutes / len(runs))
    result = []
    for seed, fold in runs:
        words = [f"seed-{seed}"] * (len(seeds) > 1) + [f"fold-{fold}"] * (len(folds) > 1)
        single = replace(table, seeds=1, models=None, fold=fold)
        result.append(Task("-".join(words), replace(recipe, seed=seed, protocol=single, train=length)))
    return result
