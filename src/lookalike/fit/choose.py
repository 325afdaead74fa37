"""The data and the recipe of a run: from what the user says, from the run that is resumed, or from the images."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from lookalike import data
from lookalike.data import Dataset
from lookalike.errors import UserError, check
from lookalike.fit import defaults, networks
from lookalike.models import Model
from lookalike.protocols import query_gallery, vehicle_id
from lookalike.protocols.class_disjoint import check_classes, has
from lookalike.recipe import Recipe, as_tree, build, of_tree, overridden, tree
from lookalike.recipe.overrides import layer_of, layered
from lookalike.recipe.validity import check_recipe, check_sets
from lookalike.runs import RunFolder
from lookalike.runs.folder import differences

Source = str | Path | Dataset | None
Tree = Mapping[str, Any]
OF_PROTOCOL = {"query_gallery": query_gallery.check_dataset, "vehicle_id": vehicle_id.check_dataset}


class Start(NamedTuple):
    """What a run begins with: the data, the recipe, and the untrained network."""

    dataset: Dataset
    recipe: Recipe
    model: Model


def choose(source: Source, recipe: str | Path | Tree | None, overrides: Sequence[str]) -> Start:
    """The start of a new run, checked as far as that needs no images."""
    if recipe is None:
        _check_overrides(overrides)
        dataset, where = load(source, {})
        check_classes(dataset)
        changes = layer_of(overrides)
        named = [changes.get("model", {}).get("backbone"), *changes.get("networks", {}).get("backbones", ())]
        values = _narrowed(defaults.default(dataset, any(map(defaults.for_photographs, named))), changes)
    else:
        values = overridden(recipe if isinstance(recipe, Mapping) else tree(recipe), overrides)
        of_tree(values)  # the kinds of its values, before any of them is used
        dataset, where = load(source, values)
    settled = of_tree(values)
    length, keys = settled.train, [text.partition("=")[0] for text in overrides]
    if "train.minutes" in keys and "train.steps" not in keys:
        length = replace(length, steps=None, epochs=None)  # the clock decides
    settled = replace(settled, data=replace(settled.data, source=where or settled.data.source), train=length)
    settled = networks.at(settled, networks.cells(settled)[0])
    return Start(dataset, settled, check_possible(settled, dataset))


def _narrowed(values: Tree, changes: Tree) -> dict[str, Any]:
    """The default recipe with changes: a network or a size that is named is not chosen by measurement any more."""
    network, images = changes.get("model", {}), changes.get("images", {})
    fixed: dict[str, Any] = {}
    if "networks" in values and "backbone" in network:
        fixed["backbones"] = [network["backbone"]]
    if "networks" in values and "pooling" in network:
        fixed["poolings"] = [network["pooling"]]
    if "networks" in values and "warp" in images:
        fixed["warps"] = [images["warp"]]
    if "networks" in values and "size" in images:
        fixed["sizes"] = [images["size"]]
        changes = layered({"images": {"short_side": networks.short_side(images["size"])}}, changes)
    return layered(values, {"networks": fixed} if fixed else {}, changes)


def _check_overrides(overrides: Sequence[str]) -> None:
    """Refuse what suits none of the default recipes; which of them it will be depends on the images."""
    mistakes = []
    for values in defaults.every():
        try:
            recipe = of_tree(overridden(values, overrides))
            check_recipe(recipe)
            build.model(replace(recipe, model=replace(recipe.model, weights=None)))
        except UserError as mistake:
            mistakes.append(mistake)
        else:
            return
    raise mistakes[0]


def check_possible(recipe: Recipe, dataset: Dataset) -> Model:
    """Names, settings, the numbers of classes and the batches, before an image is read; then the untrained network.

    The classes are split only after the audit, which may link some of them; so what is checked here is that all
    training images together can fill a batch.
    """
    check_recipe(recipe)
    for backbone in recipe.networks.backbones[1:] if recipe.networks is not None else ():
        build.model(networks.at(recipe, networks.NetworkAtSize(backbone, networks.cell_of(recipe).size)))
    if dataset.sets is not None:
        check_sets(recipe, dataset.name)
    OF_PROTOCOL.get(recipe.protocol.name, check_classes)(dataset)
    check_classes(dataset)
    train = dataset.where(split="train") if has(dataset, "train") else dataset
    fitted = defaults.fit_batches(recipe, train)
    build.sampler(fitted, train.dense(), build.bank(fitted, train, dim=1))
    return build.model(recipe)


def load(source: Source, values: Tree) -> tuple[Dataset, str]:
    """The data, and their name in the recipe, with which the run can be repeated."""
    if isinstance(source, Dataset):
        return source, ""
    table = values.get("data", {})
    expected = table.get("name")
    check(
        bool(source) or table.get("source") != "",
        "this recipe was run on a dataset in memory: say where its images are, or give the dataset to fit()",
    )
    where = str(source or table.get("source") or ("" if expected else "glyphs"))
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


def again(folder: RunFolder, source: Source, recipe: str | Path | Tree | None, overrides: Sequence[str]) -> Start:
    """The start of the run in a folder; settings that contradict it are refused."""
    own = of_tree(tree(folder.recipe))
    settings = {} if recipe is None else recipe if isinstance(recipe, Mapping) else tree(recipe)
    settings = overridden(settings, overrides)
    dataset, where = load(source or own.data.source, settings)
    known = as_tree(own)
    if own.train.minutes is not None:  # then the clock decided on the steps
        settings.get("train", {}).pop("steps", None)
    settings.pop("networks", None)  # what was measured decided
    changed = differences(known, as_tree(of_tree(_merged(known, settings))))
    if not isinstance(source, Dataset) and where != own.data.source:
        changed.append(f"data.source was {own.data.source} and is now {where}")
    check(not changed, f"{folder.path} holds another run: {'; '.join(changed[:3])}; undo that, or choose another --out")
    return Start(dataset, own, build.model(own))


def _merged(known: Tree, settings: Tree) -> dict[str, Any]:
    """The known settings, with others on top."""
    return {
        key: _merged(known.get(key, {}), value) if isinstance(value, Mapping) else value
        for key, value in settings.items()
    } | {key: value for key, value in known.items() if key not in settings}
