"""Items as rows of SQLite, the user's own columns beside them, with their vectors and pictures."""

import os
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from lookalike.errors import UserError
from lookalike.search.filters import Kind
from lookalike.search.items import Item, Value, Vectors
from lookalike.search.log import LATEST
from lookalike.search.stores import UnknownItemError, fields
from lookalike.search.stores.fields import FIELDS, OWN, adapted, checked, fields_of, item_of, kinds_of, own_columns
from lookalike.search.stores.sqlite.cells import ITEM, PATH, TEXT, VALUES, column_of, typed, vector_of
from lookalike.search.stores.sqlite.generations import identity_of, insert_vectors
from lookalike.search.stores.sqlite.segments import Keys

CHUNK = 500  # parameters of one statement
LAST_KEY = 1 << 62
Row = TypeVar("Row")


def names_of(connection: sqlite3.Connection) -> dict[str, tuple[str, Kind]]:
    """Every column that a filter may name: where it is in the table, and its kind."""
    rows = connection.execute("SELECT name, position, kind FROM columns ORDER BY position")
    return OWN | {name: (f"c{position}", kind) for name, position, kind in map(column_of, rows)}


def physical(connection: sqlite3.Connection, column: str) -> str:
    """What a column is called in the table."""
    return fields.physical(names_of(connection), column)


def make_columns(connection: sqlite3.Connection, kinds: Mapping[str, Kind]) -> None:
    """Add the columns that are new."""
    known = names_of(connection)
    for name, kind in kinds.items():
        if name not in known:
            position = connection.execute("SELECT coalesce(max(position), 0) + 1 FROM columns").fetchone()[0]
            connection.execute("INSERT INTO columns VALUES (?, ?, ?)", (position, name, kind))
            connection.execute(f"ALTER TABLE items ADD COLUMN c{position}")
            connection.execute(f"CREATE INDEX items_c{position} ON items (c{position})")


def put(connection: sqlite3.Connection, items: Sequence[Item], vectors: Vectors, pictures: Mapping[str, bytes]) -> None:
    """Write items, in the place of those with the same ids.

    Every item gets a new key: that is how segments see that it is another one.
    """
    identity, ids = identity_of(connection), [item.id for item in items]
    vectors = checked(vectors, len(items), identity.dim)
    remove(connection, list(keys_of(connection, ids, complete=False).values()))
    first = next_key(connection)
    insert(connection, items, first, time.time())
    insert_vectors(connection, identity.generation, range(first, first + len(items)), vectors)
    kept = ((first + place, pictures.get(one)) for place, one in enumerate(ids))
    connection.executemany("INSERT INTO pictures VALUES (?, ?)", [row for row in kept if row[1]])


def insert(connection: sqlite3.Connection, items: Sequence[Item], first: int, now: float) -> None:
    """Write items under the keys from `first` on."""
    make_columns(connection, kinds_of(items, names_of(connection)))
    own = own_columns(names_of(connection))
    names = ", ".join(("key", "added", *FIELDS, *(physical for physical, _ in own.values())))
    marks = ", ".join("?" * (2 + len(FIELDS) + len(own)))
    connection.executemany(
        f"INSERT INTO items ({names}) VALUES ({marks})",
        (
            (
                key,
                now if item.added is None else item.added,
                *fields_of(item, _as_stored(item.path)),
                *(adapted(item.columns.get(name), kind) for name, (_, kind) in own.items()),
            )
            for key, item in enumerate(items, start=first)
        ),
    )


def _as_stored(path: str | None) -> str | bytes | None:
    """A path as text, or as bytes where its name is not UTF-8."""
    if path is None:
        return None
    try:
        path.encode()
    except UnicodeEncodeError:
        return os.fsencode(path)
    return path


def select(connection: sqlite3.Connection, keys: Keys) -> list[Item]:
    """The items with these keys, in their order."""
    own = own_columns(names_of(connection))
    names = ", ".join(("key", "added", *FIELDS, *(physical for physical, _ in own.values())))
    kinds = (*ITEM, *(VALUES[kind] for _, kind in own.values()))
    rows = ((key, typed(row, *kinds)) for key, *row in _by_keys(connection, names, keys))
    items = {key: _item(added, row, list(own)) for key, (added, *row) in rows}
    return _in_order(items, keys)


def _item(added: float, row: Sequence[Any], columns: Sequence[str]) -> Item:
    if not 0 <= added <= LATEST:
        raise ValueError(f"an item was added at {added}")
    return item_of(added, (row[0], _as_text(row[1]), *row[2:]), columns)


def _as_text(value: Any) -> Any:
    """A path whose name is not UTF-8 as Python writes it; any other value as it is."""
    return os.fsdecode(value) if isinstance(value, bytes) else value


def pairs(connection: sqlite3.Connection, column: tuple[str, Kind], keys: Keys) -> list[tuple[str, Value]]:
    """The id of each key and what one column says of it."""
    physical, kind = column
    kinds = PATH if physical == "path" else VALUES[kind]
    found: dict[int, tuple[str, Value]] = {}
    for key, id_, value in _by_keys(connection, f"key, id, {physical}", keys):
        if not (isinstance(id_, str) and isinstance(value, kinds)):
            typed((id_, value), TEXT, kinds)  # says which
        found[key] = id_, _as_text(value) if physical == "path" else value
    return _in_order(found, keys)


def _in_order(found: Mapping[int, Row], keys: Keys) -> list[Row]:
    try:
        return [found[int(key)] for key in keys]
    except KeyError:
        raise UserError("the cache names items that the index does not hold: delete its folder 'cache'") from None


def _by_keys(connection: sqlite3.Connection, fields: str, keys: Keys) -> Iterator[tuple[Any, ...]]:
    every = [int(key) for key in keys]
    for start in range(0, len(every), CHUNK):
        some = every[start : start + CHUNK]
        statement = f"SELECT {fields} FROM items WHERE key IN ({', '.join('?' * len(some))})"
        yield from connection.execute(statement, some).fetchall()


def keys_of(connection: sqlite3.Connection, ids: Sequence[str], complete: bool = True) -> dict[str, int]:
    """The keys of ids; with `complete` an unknown one is refused."""
    keys: dict[str, int] = {}
    for start in range(0, len(ids), CHUNK):
        some = list(ids[start : start + CHUNK])
        keys |= connection.execute(f"SELECT id, key FROM items WHERE id IN ({', '.join('?' * len(some))})", some)
    missing = next((one for one in ids if one not in keys), None) if complete else None
    if missing is not None:
        near = connection.execute("SELECT id FROM items WHERE id >= ? ORDER BY id LIMIT 20", (missing[:3],)).fetchall()
        raise UnknownItemError(missing, [row[0] for row in near])
    return keys


def keys_at(connection: sqlite3.Connection, paths: Sequence[str]) -> Keys:
    """The keys of the items at these paths; paths of no item are passed over."""
    stored = [_as_stored(path) for path in paths]
    keys: list[int] = []
    for start in range(0, len(stored), CHUNK):
        some = stored[start : start + CHUNK]
        statement = f"SELECT key FROM items WHERE path IN ({', '.join('?' * len(some))})"
        keys += [row[0] for row in connection.execute(statement, some)]
    return np.array(keys, np.int64)


def remove(connection: sqlite3.Connection, keys: Sequence[int]) -> None:
    """Delete items with their vectors of all generations; the change that is being made says so."""
    change = connection.execute("SELECT max(number) + 1 FROM changes").fetchone()[0]
    tables = [f"vectors_{number}" for (number,) in connection.execute("SELECT number FROM generations").fetchall()]
    for table in ("items", "pictures", *tables):
        connection.executemany(f"DELETE FROM {table} WHERE key = ?", ((key,) for key in keys))
    connection.executemany("INSERT INTO removals VALUES (?, ?)", ((key, change) for key in keys))


def next_key(connection: sqlite3.Connection) -> int:
    """A key that was never used."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'items'").fetchone()
    last = 0 if row is None else row[0]
    if not (isinstance(last, int) and 0 <= last < LAST_KEY):
        raise sqlite3.DatabaseError(f"malformed index: {str(last)[:80]!r} was the last key")
    return last + 1


def vectors_of(connection: sqlite3.Connection, generation: int, keys: Sequence[int], dim: int) -> np.ndarray:
    """The vectors of these keys, in their order."""
    result = np.empty((len(keys), dim), np.float32)
    for place, key in enumerate(keys):
        row = connection.execute(f"SELECT vector FROM vectors_{generation} WHERE key = ?", (key,)).fetchone()
        result[place] = vector_of(row[0], dim)
    return checked(result, len(keys), dim)
