"""The rows of a study: those of its file, in every variant, across its grid, each with its layers of changes."""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from lookalike.errors import check

Tree = Mapping[str, Any]
NONE = "none"  # in the place of a row or variant: without it


def rows_of(values: Tree) -> Iterator[tuple[str, list[Tree]]]:
    """The names of all rows, with their layers of changes."""
    axes = list(_axes(values.get("grid", {}), ""))
    named = [
        {name: changes for name, changes in (values.get(key) or {"": {}}).items() if changes != NONE}
        for key in ("rows", "variants")
    ]
    for row, variant in product(*named):
        for chosen in product(*(choices for _, choices in axes)):
            words = [name for name in (row, variant) if name]
            layers = [named[0][row], named[1][variant]]
            for (key, _), value in zip(axes, chosen, strict=True):
                words.append(_word(key, value))
                layers.append(_nested(key, value))
            yield ", ".join(words) or "the recipe", layers


def _word(key: str, value: Any) -> str:
    """A value of the grid as people write it.

    >>> _word("sampler.batch_size", 32), _word("sampler", {"name": "class_balanced", "per_class": 4})
    ('batch_size 32', 'class_balanced 4')
    """
    if isinstance(value, Mapping):
        return " ".join(str(part) for part in value.values())
    return f"{key.rsplit('.', 1)[-1]} {value}"


def _axes(grid: Tree, where: str) -> Iterator[tuple[str, list[Any]]]:
    for key, value in grid.items():
        if isinstance(value, Mapping):
            yield from _axes(value, f"{where}{key}.")
        else:
            check(isinstance(value, list) and len(value) > 0, f"grid.{where}{key} is a list of values, not {value!r}")
            yield f"{where}{key}", value


def _nested(key: str, value: Any) -> dict[str, Any]:
    first, dot, rest = key.partition(".")
    return {first: _nested(rest, value) if dot else value}
