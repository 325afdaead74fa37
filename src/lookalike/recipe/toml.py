"""A recipe from TOML, and as TOML with every key written out: what a run was, and enough to repeat it.

Every key and kind of value is checked; an unknown key is refused with the nearest known one.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args, get_type_hints

from lookalike.errors import UserError, check, unknown
from lookalike.files import read_text
from lookalike.recipe.overrides import Tree, overridden
from lookalike.recipe.settings import Recipe
from lookalike.values import checked


def load(path: str | Path, overrides: Iterable[str] = ()) -> Recipe:
    """The recipe in a file, with `overrides` on top."""
    return of_tree(overridden(tree(path), overrides))


def tree(path: str | Path) -> Tree:
    """The tables of a TOML file."""
    path = Path(path)
    check(path.is_file(), f"there is no recipe '{path}': give a .toml file, such as examples/glyphs.toml")
    try:
        return tomllib.loads(read_text(path))
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"'{path}' is not a recipe ({error})") from None


def of_tree(values: Mapping[str, Any]) -> Recipe:
    """The recipe in tables; every key and kind of value is checked."""
    check("tune" not in values, "[tune] holds ranges to search: run lookalike tune with this recipe, or leave it out")
    recipe = _table(Recipe, values, "")
    assert isinstance(recipe, Recipe)
    return recipe


def keys(kind: type[Any], prefix: str = "") -> dict[str, Any]:
    """The keys of a table with the kind of value each takes; `settings` stands for the other keys, which it passes on.

    >>> from lookalike.training import Clipping
    >>> keys(Clipping, "clip_")
    {'clip_norm': float | None, 'clip_value': float | None}
    """
    result: dict[str, Any] = {}
    hints = get_type_hints(kind)
    for part in fields(kind):
        if "prefix" in part.metadata:
            result |= keys(hints[part.name], prefix + part.metadata["prefix"])
        elif "fact" not in part.metadata:
            result[part.name if part.name == "settings" else f"{prefix}{part.name}"] = hints[part.name]
    return result


def _table(kind: type[Any], values: Mapping[str, Any], where: str) -> Any:
    known = keys(kind)
    passed_on = known.pop("settings", None) is not None
    further = {key: value for key, value in values.items() if key not in known}
    if further and not passed_on:
        raise unknown(f"key of {where.rstrip('.') or 'a recipe'}", next(iter(further)), known)
    content = {key: _checked(known[key], values[key], f"{where}{key}") for key in known if key in values}
    needed = [part.name for part in fields(kind) if part.default is MISSING and part.default_factory is MISSING]
    for name in needed:
        misspelt = get_close_matches(name, further, n=1)
        if name not in content and misspelt:
            raise unknown(f"key of {where.rstrip('.')}", misspelt[0], known)
        check(name in content, f"the recipe does not say {where}{name}: add it")
    return kind(**_arguments(kind, content, further))


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
    tables = [option for option in (hint, *get_args(hint)) if is_dataclass(option)]
    if tables and isinstance(value, Mapping):
        return _table(tables[0], value, f"{where}.")  # type: ignore[arg-type]
    return checked(hint, value, where)


def as_tree(table: Any) -> dict[str, Any]:
    """The tables of a recipe, or one `table` of it, as dictionaries; what is not set is left out."""
    result: dict[str, Any] = {}
    for part in fields(table):
        value = getattr(table, part.name)
        if "fact" in part.metadata:
            continue
        if part.name == "settings":
            result |= value
        elif "prefix" in part.metadata:
            result |= {f"{part.metadata['prefix']}{key}": inner for key, inner in as_tree(value).items()}
        elif is_dataclass(value):
            result[part.name] = as_tree(value)
        elif value is not None and value != {}:
            result[part.name] = value
    return result


def to_toml(recipe: Recipe, header: str = "") -> str:
    """The recipe as text that `load` reads back, with the lines of `header` as comments above it.

    >>> from lookalike.recipe.settings import Member
    >>> print(to_toml(Recipe(Member("triplet", settings={"margin": 0.1}), Member("class_balanced"))).split("[samp")[0])
    seed = 0
    <BLANKLINE>
    [loss]
    name = "triplet"
    margin = 0.1
    <BLANKLINE>
    <BLANKLINE>
    """
    comment = "".join(f"# {line}".rstrip() + "\n" for line in header.splitlines())
    return comment + "\n".join(_lines(as_tree(recipe), ""))


def _lines(tree: Mapping[str, Any], where: str) -> Iterator[str]:
    for key, value in tree.items():
        if not isinstance(value, Mapping):
            yield f"{_key(key)} = {_literal(value)}"
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield f"\n[{where}{_key(key)}]"
            yield from _lines(value, f"{where}{_key(key)}.")


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else _literal(key)


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_literal(part) for part in value) + "]"
    if isinstance(value, str):
        return '"' + "".join(_escaped(letter) for letter in value) + '"'
    return repr(value)


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return "\\" + letter
    return letter if letter.isprintable() else f"\\U{ord(letter):08x}"
