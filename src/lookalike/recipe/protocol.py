"""What [protocol] means: the parts of a dataset, how test images are measured, and the runs that one recipe stands for.

A recipe with several seeds or folds is several runs. Each of them has a recipe of its own, with one seed and one fold,
and can be repeated alone.
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

SHARED = {  # those that draw test and validation classes by share
    "class_disjoint": class_disjoint.parts,
    "query_gallery": query_gallery.parts,
    "vehicle_id": vehicle_id.parts,
}
CROSS = "cross_validation"
POSSIBLE: dict[str, tuple[Any, ...]] = {
    "name": (*SHARED, CROSS),
    "select": ("validation", "test_max"),
    "gallery": ("all", "one_per_class"),
}


class Task(NamedTuple):
    """One run of several: the name of its folder, and its own recipe."""

    name: str
    recipe: Recipe


def check_protocol(recipe: Recipe) -> None:
    """Refuse what cannot be, before any data are there."""
    wanted = recipe.protocol
    for key, possible in POSSIBLE.items():
        if getattr(wanted, key) not in possible:
            raise unknown(f"protocol.{key}", getattr(wanted, key), possible)
    for key in ("seeds", "repeats"):
        check(getattr(wanted, key) > 0, f"protocol.{key} must be at least 1, not {getattr(wanted, key)}")
    check(wanted.folds >= 2, f"protocol.folds must be at least 2, not {wanted.folds}")
    models = wanted.models or wanted.folds
    check(1 <= models <= wanted.folds, f"protocol.models is 1 to {wanted.folds} (the folds), not {models}")
    check(wanted.name == CROSS or wanted.fold is None, "protocol.fold is for cross_validation: leave it out")
    optimistic = wanted.name == CROSS and wanted.select == "test_max"
    check(not optimistic, "cross_validation validates on its folds: leave protocol.select at validation")
    check(
        wanted.gallery == "all" or wanted.name == "vehicle_id",
        "protocol.gallery=one_per_class is for vehicle_id: leave it out",
    )


def parts(recipe: Recipe, dataset: Dataset) -> Parts:
    """Who trains, validates and tests in a single run. Where test chooses the weights, nobody validates."""
    wanted, shares = recipe.protocol, recipe.data
    if wanted.name == CROSS:
        return cross_validation.parts(dataset, wanted.folds, wanted.fold or 1)
    validation = 0.0 if wanted.select == "test_max" else shares.validation
    return SHARED[wanted.name](dataset, shares.test, validation, recipe.seed)


def measure(recipe: Recipe) -> Measure:
    """How embeddings of test images are measured."""
    if recipe.protocol.gallery == "one_per_class":
        return partial(vehicle_id.judge_repeats, repeats=recipe.protocol.repeats)
    return judge


def tasks(recipe: Recipe) -> list[Task]:
    """The single runs of a recipe, seed by seed and fold by fold; a time budget is shared among them.

    >>> from lookalike.recipe.settings import Member, Proof
    >>> plain = Recipe(Member("triplet"), Member("class_balanced"), protocol=Proof(CROSS, seeds=2, models=2))
    >>> [task.name for task in tasks(plain)]
    ['seed-0-fold-1', 'seed-0-fold-2', 'seed-1-fold-1', 'seed-1-fold-2']
    """
    wanted = recipe.protocol
    folds: list[int | None] = [wanted.fold]
    if wanted.name == CROSS and wanted.fold is None:
        folds = list(range(1, (wanted.models or wanted.folds) + 1))
    seeds = range(recipe.seed, recipe.seed + wanted.seeds)
    runs = [(seed, fold) for seed in seeds for fold in folds]
    minutes = recipe.train.minutes
    length = replace(recipe.train, minutes=None if minutes is None else minutes / len(runs))
    found = []
    for seed, fold in runs:
        named = [f"seed-{seed}"] * (len(seeds) > 1) + [f"fold-{fold}"] * (len(folds) > 1)
        alone = replace(wanted, seeds=1, models=None, fold=fold)
        found.append(Task("-".join(named), replace(recipe, seed=seed, protocol=alone, train=length)))
    return found
