"""Changes to a recipe's tables: `--set key=value`, the rows of a study, the draws of a search.

Each source of changes is a layer, and the order of keys within a layer means nothing. A layer that names another loss,
miner or sampler starts that table anew: the settings that came with the old name go. Settings from a layer that names
nothing stay, whatever a later layer names, and are checked against it. A miner that came with the old loss stays if the
new one can use it, and goes if not; one that is named together with the new loss, or later, is refused instead.
"""

import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from lookalike.errors import UserError, check
from lookalike.recipe.goal import mines

Tree = dict[str, Any]
NAMED = ("loss", "miner", "sampler")
LENGTHS = (("steps", "epochs"), ("epochs", "steps"))  # of a run: the one in a later layer replaces the other


def overridden(values: Mapping[str, Any], overrides: Iterable[str]) -> Tree:
    """The tables with some keys set by `overrides`, in whatever order they are written.

    >>> overridden({"loss": {"name": "margin", "beta": 0.2}}, ["loss.margin=0.1", "loss.name=triplet", "train.steps=5"])
    {'loss': {'margin': 0.1, 'name': 'triplet'}, 'train': {'steps': 5}}
    """
    return layered(values, layer_of(overrides))


def layer_of(overrides: Iterable[str]) -> Tree:
    """Texts such as `loss.name=triplet` as tables.

    >>> layer_of(["loss.name=triplet", "loss.margin=0.1"])
    {'loss': {'name': 'triplet', 'margin': 0.1}}
    """
    layer: Tree = {}
    for text in overrides:
        key, equals, written = text.partition("=")
        check(bool(equals and key.strip()), f"--set {text}: write key=value, such as optimiser.lr=1e-4")
        *tables, last = key.strip().split(".")
        place = layer
        for table in tables:
            place = place.setdefault(table, {})
            check(isinstance(place, dict), f"--set {text}: {table} is a value, not a table")
        value, present = _value(written), place.get(last)
        if isinstance(present, dict):
            check(
                isinstance(value, dict), f"--set {text}: {last} is a table, and another --set changes one of its keys"
            )
            value = present | value
        place[last] = value
    return layer


def layered(values: Mapping[str, Any], *layers: Mapping[str, Any]) -> Tree:
    """The tables with layers of changes on top, the last one winning.

    >>> recipe = {"loss": {"name": "margin", "beta": 0.6}, "seed": 1}
    >>> layered(recipe, {"loss": {"margin": 0.1}}, {"loss": {"name": "triplet"}})
    {'loss': {'margin': 0.1, 'name': 'triplet'}, 'seed': 1}
    >>> layered({"loss": {"name": "triplet"}, "miner": {"name": "semihard"}}, {"loss": {"name": "arcface"}})
    {'loss': {'name': 'arcface'}}
    """
    result = merged({}, values)
    unnamed: dict[str, Tree] = {table: {} for table in NAMED}
    for layer in layers:
        for table in NAMED:
            changes = layer.get(table)
            if isinstance(changes, Mapping):
                result = _begun(result, table, changes, unnamed[table])
        length = layer.get("train")
        for one, other in LENGTHS:
            if isinstance(length, Mapping) and one in length and other not in length and "train" in result:
                result["train"].pop(other, None)
        result = merged(result, layer)
    if _inherits_miner(values, layers) and not mines(str(_named(result)), str(_named(result, "miner"))):
        result.pop("miner")
    return _without_miner(result)


def _inherits_miner(values: Mapping[str, Any], layers: Iterable[Mapping[str, Any]]) -> bool:
    """Whether the miner was chosen for another loss than the one that is named in the end."""
    loss, chosen_for = _named(values), _named(values) if "miner" in values else None
    for layer in layers:
        loss = _named(layer) or loss
        if "miner" in layer:
            chosen_for = loss
    return chosen_for not in (None, loss)


def _named(tables: Mapping[str, Any], table: str = "loss") -> Any:
    """The member that a table names, if it does."""
    content = tables.get(table)
    return content.get("name") if isinstance(content, Mapping) else None


def _begun(result: Tree, table: str, changes: Mapping[str, Any], unnamed: Tree) -> Tree:
    """The tables, one of them begun anew where the changes name another member; `unnamed` is brought up to date."""
    if "name" not in changes:
        unnamed |= changes
        return result
    old = result.get(table)
    if isinstance(old, Mapping) and old.get("name") != changes["name"]:
        result = result | {table: dict(unnamed)}
    for key in changes:
        unnamed.pop(key, None)
    return result


def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> Tree:
    """The tables of `old` with those of `new` on top, key by key."""
    result = dict(old)
    for key, value in new.items():
        if isinstance(value, Mapping):
            present = result.get(key, {})
            check(isinstance(present, Mapping), f"{key} = {present!r} is a value, not a table: no key of it can be set")
            value = merged(present, value)
        result[key] = value
    return result


def _without_miner(tables: Tree) -> Tree:
    """The name "none" leaves out the miner."""
    miner = tables.get("miner")
    if miner != "none" and not (isinstance(miner, Mapping) and miner.get("name") == "none"):
        return tables
    left = [key for key in miner if key != "name"] if isinstance(miner, Mapping) else []
    if left:
        raise UserError(f"miner.{left[0]} is set, but miner.name = none leaves out the miner: remove one of them")
    return {key: table for key, table in tables.items() if key != "miner"}


def _value(written: str) -> Any:
    """A TOML value, or else the text itself: names need no quotes."""
    try:
        return tomllib.loads(f"value = {written.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        return written.strip()
