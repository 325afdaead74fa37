"""Which data and which recipe: from what the user said, from the run that is resumed, or from the images themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lookalike import data
from lookalike.data import Dataset
from lookalike.errors import UserError, check
from lookalike.recipe import Recipe, as_tree, build, defaults, of_tree, overridden, tree
from lookalike.recipe.protocol import parts, tasks
from lookalike.recipe.validity import check_recipe
from lookalike.runs.folder import RunFolder, differences

Source = str | Path | Dataset | None
Tree = Mapping[str, Any]


def choose(source: Source, recipe: str | Path | Tree | None, overrides: Sequence[str]) -> tuple[Dataset, Recipe]:
    """The data and the recipe of a new run, checked against each other before the first image is read."""
    if recipe is None:
        _check_overrides(overrides)
        dataset, where = found(source, {})
        values = overridden(_default(dataset), overrides)
    else:
        values = overridden(recipe if isinstance(recipe, Mapping) else tree(recipe), overrides)
        of_tree(values)  # its kinds of values, before any of them is used
        dataset, where = found(source, values)
    chosen = of_tree(values)
    length, said = chosen.train, [text.partition("=")[0] for text in overrides]
    if "train.minutes" in said and "train.steps" not in said:
        length = replace(length, steps=None, epochs=None)  # the clock decides
    chosen = replace(chosen, data=replace(chosen.data, source=where or chosen.data.source), train=length)
    check_possible(chosen, dataset)
    return dataset, chosen


def _check_overrides(overrides: Sequence[str]) -> None:
    """Refuse what suits none of the default recipes; which of them it will be, only the images tell."""
    mistakes = []
    for values in defaults.every():
        try:
            _check_alone(of_tree(overridden(values, overrides)))
        except UserError as mistake:
            mistakes.append(mistake)
        else:
            return
    raise mistakes[0]


def _default(dataset: Dataset) -> Tree:
    tables = defaults.default(dataset)
    return defaults.fit_batches(tables, parts(of_tree(tables), dataset).train)


def check_possible(recipe: Recipe, dataset: Dataset) -> None:
    """Names, settings, the split and the batches, before anything long begins."""
    _check_alone(recipe)
    for task in tasks(recipe):
        rough = parts(task.recipe, dataset)
        build.sampler(task.recipe, rough.train, build.bank(task.recipe, rough.train, dim=1))


def _check_alone(recipe: Recipe) -> None:
    """What can be known without data."""
    check_recipe(recipe)
    build.model(recipe)


def found(source: Source, values: Tree) -> tuple[Dataset, str]:
    """The data, and how to name them in the recipe so that the run can be repeated."""
    if isinstance(source, Dataset):
        return source, ""
    given = values.get("data", {})
    expected = given.get("name")
    check(
        bool(source) or given.get("source") != "",
        "this recipe was run on a dataset in memory: say where its images are, or give the dataset to fit()",
    )
    where = str(source or given.get("source") or ("" if expected else "glyphs"))
    check(bool(where), f"this recipe is for {expected}: say where its images are, as {expected}=FOLDER")
    dataset = data.load(where)
    check(
        expected is None or dataset.name == expected,
        f"this recipe is for {expected}, these data are {dataset.name}: write --set data.name={dataset.name} to try it",
    )
    name, equals, place = where.partition("=")
    if equals and name in data.MEMBERS:
        return dataset, f"{name}={Path(place).expanduser().resolve()}"
    return dataset, where if where in data.MEMBERS else str(Path(where).expanduser().resolve())


def again(
    folder: RunFolder, source: Source, recipe: str | Path | Tree | None, overrides: Sequence[str]
) -> tuple[Dataset, Recipe]:
    """The data and the recipe of the run in the folder; whoever says something else is told so."""
    was = of_tree(tree(folder.recipe))
    given = {} if recipe is None else recipe if isinstance(recipe, Mapping) else tree(recipe)
    said = overridden(given, overrides)
    dataset, where = found(source or was.data.source, said)
    known = as_tree(was)
    if was.train.minutes is not None:  # then the clock decided on the steps
        said.get("train", {}).pop("steps", None)
    changed = differences(known, as_tree(of_tree(_merged(known, said))))
    if not isinstance(source, Dataset) and where != was.data.source:
        changed.append(f"data.source was {was.data.source} and is now {where}")
    check(not changed, f"{folder.path} holds another run: {'; '.join(changed[:3])}; undo that, or give another --out")
    return dataset, was


def _merged(known: Tree, said: Tree) -> dict[str, Any]:
    """What is known, with what was said on top."""
    return {
        key: _merged(known.get(key, {}), value) if isinstance(value, Mapping) else value for key, value in said.items()
    } | {key: value for key, value in known.items() if key not in said}
