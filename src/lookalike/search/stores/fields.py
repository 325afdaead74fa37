"""What every store keeps of an item, and how rows of a table become items again.

A user's column may have any name; in the table it is called c1, c2, …, so no name ever becomes part of a statement. Its
first values decide whether it holds numbers or texts, and it keeps that kind. True and false are the texts `true` and
`false`, whatever stands beside them: a column of numbers refuses them.
"""

import json
import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lookalike.errors import UserError, check, unknown
from lookalike.search.filters import Kind, as_number, kind_of
from lookalike.search.items import Item, Stamp, Value, Vectors
from lookalike.search.log import LATEST
from lookalike.search.stores import BadValueError

LONGEST = 1e15  # of a vector: the square of a longer one does not fit a float32
WIDEST = 1 << 20  # dimensions of a vector
MOST = 200  # columns of the user: each has an index, and each new one changes the schema
OWN: dict[str, tuple[str, Kind]] = {
    "id": ("id", "text"),
    "path": ("path", "text"),
    "label": ("label", "text"),
    "root": ("root", "text"),
    "added": ("added", "number"),
}
FIELDS = ("id", "path", "label", "root", "size", "modified", "digest")
SIGN = "~"  # before the digest of an item whose vector is mapped: so its row, and every copy of it, says so
IS_MAPPED = f"substr(digest, 1, 1) = '{SIGN}'"
UNSIGNED = f"nullif(ltrim(digest, '{SIGN}'), '')"
SIGNED = f"'{SIGN}' || coalesce({UNSIGNED}, '')"
Names = Mapping[str, tuple[str, Kind]]  # columns that a filter may name: where they are in the table, and their kinds


def physical(names: Names, column: str) -> str:
    """What a column is called in the table."""
    if column not in names:
        raise unknown("column", column, names)
    return names[column][0]


def own_columns(names: Names) -> dict[str, tuple[str, Kind]]:
    """The user's columns among all."""
    return {name: place for name, place in names.items() if name not in OWN}


def kinds_of(items: Sequence[Item], known: Names) -> dict[str, Kind]:
    """The columns that items bring with their kinds; a value that a known column cannot hold is refused."""
    kinds: dict[str, Kind] = {}
    for item in items:
        for name, value in item.columns.items():
            if name in known:
                _check_kind(item, name, known[name][1])
            elif value is not None and kinds.get(name) != "text":
                kinds[name] = kind_of(value)
    count = len(known.keys() - OWN.keys() | kinds.keys() - OWN.keys())
    check(count <= MOST, f"an index has at most {MOST} columns, with these items it would have {count}: leave some out")
    return kinds


def check_kinds(items: Sequence[Item], known: Mapping[str, Kind]) -> None:
    """Refuse values that the columns of an index cannot hold, before any of the items is written."""
    kinds_of(items, {name: ("", kind) for name, kind in known.items()})


def _check_kind(item: Item, name: str, kind: Kind) -> None:
    check(name not in OWN, f"items have a column '{name}' of their own: choose another name")
    try:
        adapted(item.columns[name], kind)
    except BadValueError as error:
        raise BadValueError(f"'{name}' of the item {item.id!r} {error}", item.id) from None


def adapted(value: Value, kind: Kind) -> Any:
    """A value as a column of that kind holds it."""
    if kind == "text":
        return value if value is None or isinstance(value, str) else json.dumps(value)
    if not isinstance(value, str | bool):
        return value
    number = as_number(value) if isinstance(value, str) else None
    if number is None:
        shown = repr(value[:80]) if isinstance(value, str) else json.dumps(value)
        raise BadValueError(f"is {shown}, and the column holds numbers: give a number or null, or rename the column")
    return number


def fields_of(item: Item, path: str | bytes | None) -> tuple[Any, ...]:
    """An item's own fields, in the order of FIELDS; the path as the store writes it."""
    size, modified, digest = (
        (None, None, None) if item.stamp is None else (item.stamp.size, item.stamp.modified, item.stamp.digest)
    )
    return (item.id, path, item.label, item.root, size, modified, f"{SIGN}{digest or ''}" if item.mapped else digest)


def item_of(added: float, row: Sequence[Any], columns: Sequence[str]) -> Item:
    """The item of a row: FIELDS, then the user's columns."""
    id_, path, label, root, size, modified, digest = row[: len(FIELDS)]
    own = {name: value for name, value in zip(columns, row[len(FIELDS) :], strict=True) if value is not None}
    mapped = digest is not None and digest.startswith(SIGN)
    digest = digest[len(SIGN) :] or None if mapped else digest
    stamp = None if digest is None else Stamp(size, modified, digest)
    return Item(id_, path, label, own, root, stamp, added, mapped)


def check_batch(items: Sequence[Item]) -> None:
    """Refuse ids that come twice, and values that one of the stores cannot hold."""
    for item in items:
        _check_names(item)
        for name, value in item.columns.items():
            if not _storable(value):
                raise BadValueError(
                    f"'{name}' of the item {item.id!r} is {value!r}: a column holds texts, true, false, null, and "
                    "numbers that are finite and Python's own, whole ones of at most 64 bits"
                )
    check(len({item.id for item in items}) == len(items), "two items of one batch have the same id: ids must be unique")
    if not is_text("".join(map(_texts, items))):
        odd = next(item for item in items if not is_text(_texts(item)))
        raise UserError(f"the item {odd.id!r} has a name or value that is not text: no NUL, and only Unicode")


def _texts(item: Item) -> str:
    texts = (item.id, item.label, *item.columns, *item.columns.values())
    return "".join(text for text in texts if isinstance(text, str))


def _check_names(item: Item) -> None:
    """An item may have been built from anything: types are not checked before."""
    if not (isinstance(item.id, str) and item.id):
        raise BadValueError(f"an item needs an id: a text that is not empty, not {item.id!r}")
    if not isinstance(item.label, str | None):
        raise BadValueError(f"a label is a text or None, not {item.label!r}")
    if not all(isinstance(name, str) and name for name in item.columns):
        raise BadValueError("a column needs a name, a text")
    if not (item.added is None or _is_time(item.added)):
        raise BadValueError(f"the time an item was added must be in seconds since 1970, not {item.added!r}")


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value <= LATEST


def _storable(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | bool) or (isinstance(value, int) and -(2**63) <= value < 2**63)


def checked_k(k: object) -> int:
    """How many items an answer has, as a number of Python's own."""
    try:
        number = operator.index(k)  # type: ignore[arg-type]
    except TypeError:
        number = 0
    check(number > 0, f"k must be a whole number of at least 1, not {k!r}")
    return number


def is_text(text: str) -> bool:
    """Whether every store can hold a text.

    >>> is_text("café"), is_text("caf\\udce9"), is_text("a\\0b")
    (True, False, False)
    """
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def checked(vectors: Vectors, count: int, dim: int) -> Vectors:
    """Vectors as a store keeps them; what cannot be compared is refused."""
    array = np.ascontiguousarray(vectors, np.float32)
    check(array.ndim == 2, f"vectors must form a matrix n × d, not an array of shape {array.shape}")
    check(
        array.shape == (count, dim),
        f"{array.shape[0]} vectors of {array.shape[1]} dimensions, expected {count} of {dim}",
    )
    if len(array) and not np.abs(array).max() < LONGEST:  # nor is NaN
        check(bool(np.isfinite(array).all()), "a vector holds NaN or infinity: embed its image again")
        raise UserError(f"a vector is longer than {LONGEST:g}: normalise the vectors")
    return array
