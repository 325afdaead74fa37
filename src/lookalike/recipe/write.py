"""A recipe as TOML, every key written out: what a run was, and enough to repeat it."""

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from lookalike.recipe.settings import Recipe


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
