"""A recipe from TOML, with `--set key=value` on top. Every unknown key is refused with the nearest known one."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from lookalike.errors import UserError, check, unknown
from lookalike.recipe.settings import Recipe

Tree = dict[str, Any]
NAMED = ("loss", "miner", "sampler")  # choosing another name starts the table anew


def load(path: str | Path, overrides: Iterable[str] = ()) -> Recipe:
    """The recipe in a file, with overrides such as `loss.name=triplet`."""
    return of_tree(overridden(tree(path), overrides))


def tree(path: str | Path) -> Tree:
    """The tables of a TOML file."""
    path = Path(path)
    check(path.is_file(), f"there is no recipe '{path}': give a .toml file, such as one in recipes/")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"'{path}' is no recipe ({error})") from None


def overridden(values: Mapping[str, Any], overrides: Iterable[str]) -> Tree:
    """The tables with some keys set. A new name of a loss, miner or sampler takes no settings of the old one along.

    >>> overridden({"loss": {"name": "margin", "margin": 0.2}}, ["loss.name=triplet", "train.steps=5"])
    {'loss': {'name': 'triplet'}, 'train': {'steps': 5}}
    """
    result, said = _copied(values), set()
    for text in overrides:
        key, equals, written = text.partition("=")
        check(bool(equals and key), f"--set {text}: write key=value, such as optimiser.lr=1e-4")
        said.add(key.strip())
        *tables, last = key.strip().split(".")
        place = result
        for table in tables:
            place = place.setdefault(table, {})
            check(isinstance(place, dict), f"--set {text}: {table} is a value, not a table")
        if last == "name" and tables and tables[-1] in NAMED and place.get("name") != _value(written):
            place.clear()
        place[last] = _value(written)
    for one, other in (("steps", "epochs"), ("epochs", "steps")):  # two ways to say the same
        if f"train.{one}" in said and f"train.{other}" not in said:
            result["train"].pop(other, None)
    if result.get("miner") in ("none", {"name": "none"}):
        del result["miner"]
    return result


def _copied(values: Mapping[str, Any]) -> Tree:
    return {key: _copied(part) if isinstance(part, Mapping) else part for key, part in values.items()}


def _value(written: str) -> Any:
    """A TOML value, or else the text itself: names need no quotes."""
    try:
        return tomllib.loads(f"value = {written.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        return written.strip()


def of_tree(values: Mapping[str, Any]) -> Recipe:
    """The recipe in tables; every key and kind of value is checked."""
    check("tune" not in values, "[tune] holds ranges to search: run lookalike tune with this recipe, or leave it out")
    recipe = _table(Recipe, values, "")
    assert isinstance(recipe, Recipe)
    return recipe


def keys(kind: type[Any], prefix: str = "") -> dict[str, Any]:
    """The keys of a table with the kind of value each takes; `settings` stands for whatever else it passes on.

    >>> from lookalike.training import Clipping
    >>> keys(Clipping, "clip_")
    {'clip_norm': float | None, 'clip_value': float | None}
    """
    result: dict[str, Any] = {}
    hints = get_type_hints(kind)
    for part in fields(kind):
        if "prefix" in part.metadata:
            result |= keys(hints[part.name], prefix + part.metadata["prefix"])
        elif part.init and "fact" not in part.metadata:
            result[part.name if part.name == "settings" else f"{prefix}{part.name}"] = hints[part.name]
    return result


def _table(kind: type[Any], values: Mapping[str, Any], where: str) -> Any:
    known = keys(kind)
    passed_on = known.pop("settings", None) is not None
    further = {key: value for key, value in values.items() if key not in known}
    if further and not passed_on:
        raise unknown(f"key of {where.rstrip('.') or 'a recipe'}", next(iter(further)), known)
    checked = {key: _checked(known[key], values[key], f"{where}{key}") for key in known if key in values}
    needed = [part.name for part in fields(kind) if part.default is MISSING and part.default_factory is MISSING]
    for name in needed:
        check(name in checked, f"the recipe does not say {where}{name}: add it")
    return kind(**_arguments(kind, checked, further))


def _arguments(kind: type[Any], values: Tree, further: Tree, prefix: str = "") -> Tree:
    """The arguments of a table's dataclass, those of inlined ones put together first."""
    result: Tree = {}
    for part in fields(kind):
        if "prefix" in part.metadata:
            inner = _arguments(type(part.default), values, further, prefix + part.metadata["prefix"])
            result[part.name] = replace(part.default, **inner)  # type: ignore[type-var]
        elif part.name == "settings":
            result[part.name] = further
        elif f"{prefix}{part.name}" in values and "fact" not in part.metadata:
            result[part.name] = values[f"{prefix}{part.name}"]
    return result


def _checked(hint: Any, value: Any, where: str) -> Any:
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if value == "none" and NoneType in options:  # TOML has no word for nothing
        return None
    for option in options:
        if is_dataclass(option) and isinstance(option, type) and isinstance(value, Mapping):
            return _table(option, value, f"{where}.")
        if _fits(option, value):
            return tuple(value) if isinstance(value, list) else value
    names = " or ".join(_name(option) for option in options if option is not NoneType)
    raise UserError(f"{where} = {value!r}: it must be {names}")


def _fits(option: Any, value: Any) -> bool:
    origin = get_origin(option)
    if origin is Literal:
        return value in get_args(option)
    if origin is tuple:
        return isinstance(value, list | tuple) and all(_fits(get_args(option)[0], part) for part in value)
    if origin is not None:
        return isinstance(value, Mapping) and all(_fits(get_args(option)[1], part) for part in value.values())
    if option is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if option is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return option is Any or (option in (str, bool) and isinstance(value, option))


def _name(option: Any) -> str:
    if get_origin(option) is Literal:
        return "one of " + ", ".join(get_args(option))
    if get_origin(option) is tuple:
        return "a list"
    if get_origin(option) is not None:
        return "a table of tables"
    words = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
    return words.get(option, "a table")
