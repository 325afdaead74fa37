"""Items as rows of PostgreSQL, and the user's own columns beside them."""

import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import psycopg
from psycopg.types.numeric import Int8

from lookalike.errors import check
from lookalike.search.filters import Filter, Kind, as_sql
from lookalike.search.items import Item, Value, Vectors
from lookalike.search.stores import GenerationError, UnknownItemError, fields
from lookalike.search.stores.fields import FIELDS, Names, adapted, fields_of, item_of, kinds_of, own_columns
from lookalike.search.stores.postgres import schema
from lookalike.search.stores.postgres.database import Snapshot

LONGEST = 2000  # bytes of a text that has an index
BYTES = "\x01"  # begins a path whose name is not UTF-8


def clause(snapshot: Snapshot, where: Filter) -> tuple[str, list[Any]]:
    """Conditions as SQL with its parameters."""
    text, parameters = as_sql(where, snapshot.names, "%s")
    return text, [value if isinstance(value, str) else number(value) for value in parameters]


def literal_clause(snapshot: Snapshot, where: Filter) -> str:
    """Conditions as SQL with their values in it, quoted: a plan that is kept fits the values it was made for."""
    text, parameters = clause(snapshot, where)
    values = (psycopg.sql.Literal(value).as_string(snapshot.connection) for value in parameters)
    return text % tuple(value.replace("%", "%%") for value in values)


def number(value: float | None) -> Decimal | None:
    """A number as the server compares it: fractions in the digits that people see, whole ones exactly.

    >>> number(0.1), number(1e23) == 1e23
    (Decimal('0.1'), True)
    """
    if value is None or value != value:
        return None
    whole = isinstance(value, int) or float(value).is_integer()
    return Decimal(int(value)) if whole else Decimal(repr(float(value)))


def plain(value: Any) -> Any:
    """A value of a column as Python's own: a whole number stays one, up to the 64 bits that one may have."""
    if not isinstance(value, Decimal):
        return value
    digits = str(value)  # its exponent is slower to read
    whole = digits.lstrip("-").isdigit() and -(2**63) <= value < 2**63
    return int(value) if whole else float(value)


def make_columns(snapshot: Snapshot, kinds: Mapping[str, Kind], long: Collection[str] = ()) -> Names:
    """The user's columns, with those that are new.

    A column of long texts has no index: no row of one may be so large.
    """
    connection, known = snapshot.connection, own_columns(snapshot.names)
    if kinds.keys() <= known.keys() and not long:
        return known
    connection.execute("LOCK TABLE columns IN EXCLUSIVE MODE")  # of two writers with new columns one is first
    known = dict(schema.names_now(connection))
    for name, kind in kinds.items():
        if name not in known:
            known[name] = _add(snapshot, name, kind)
    for name in long:
        connection.execute("UPDATE columns SET indexed = false WHERE name = %s AND indexed", (name,))
        for table in schema.tables_now(connection):
            connection.execute(f"DROP INDEX IF EXISTS {table}_{known[name][0]}")
    return known


def know(snapshot: Snapshot, kinds: Mapping[str, Kind]) -> None:
    make_columns(snapshot, kinds)


def _long(value: Value) -> bool:
    return isinstance(value, str) and len(value.encode()) > LONGEST


def _add(snapshot: Snapshot, name: str, kind: Kind) -> tuple[str, Kind]:
    row = snapshot.connection.execute(
        "INSERT INTO columns (name, kind) VALUES (%s, %s) RETURNING position", (name, kind)
    ).fetchone()
    assert row is not None
    for table in schema.tables_now(snapshot.connection):  # a generation may have begun since
        schema.add_column(snapshot.connection, table, f"c{row[0]}", kind)
    return f"c{row[0]}", kind


def put(
    snapshot: Snapshot,
    items: Sequence[Item],
    vectors: Vectors,
    pictures: Mapping[str, bytes],
    generation: int | None,
) -> None:
    """Write items in the place of those with the same ids."""
    if generation not in (None, snapshot.identity.generation):
        raise GenerationError
    vectors = fields.checked(vectors, len(items), snapshot.identity.dim)
    long = {name for item in items for name, value in item.columns.items() if _long(value)}
    own = make_columns(snapshot, kinds_of(items, snapshot.names), long)
    remove(snapshot, [item.id for item in items])
    note_length(snapshot, snapshot.identity.generation, vectors)
    names = ", ".join(("added", *FIELDS, *(physical for physical, _ in own.values()), "vector"))
    connection, now = snapshot.connection, time.time()
    with connection.cursor().copy(f"COPY {snapshot.table} ({names}) FROM STDIN (FORMAT binary)") as copy:
        for item, vector in zip(items, vectors, strict=True):
            copy.write_row((now if item.added is None else item.added, *_row(item, own), vector))
    kept = [(item.id, pictures[item.id]) for item in items if item.id in pictures]
    if kept:
        connection.cursor().executemany("INSERT INTO pictures VALUES (%s, %s)", kept)


def _row(item: Item, own: Mapping[str, tuple[str, Kind]]) -> Iterator[Any]:
    for text, what in ((item.id, "id"), (item.label, "label")):
        check(not _long(text), f"the {what} '{str(text)[:40]}…' is longer than {LONGEST:,} bytes: shorten it")
    for value in fields_of(item, _as_stored(item.path)):
        yield Int8(value) if isinstance(value, int) else value
    for name, (_, kind) in own.items():
        value = adapted(item.columns.get(name), kind)
        yield value if isinstance(value, str) else number(value)


def note_length(snapshot: Snapshot, generation: int, vectors: Vectors) -> None:
    """Keep the length of the longest vector: what bounds the rounding of scores."""
    longest = float(np.linalg.norm(vectors.astype(np.float64), axis=1).max(initial=0.0))
    statement = "UPDATE generations SET reach = %s WHERE number = %s AND reach < %s"
    snapshot.connection.execute(statement, (longest, generation, longest))


def _as_stored(path: str | None) -> str | None:
    """A path as text, also where its name is not UTF-8."""
    if path is None:
        return None
    try:
        path.encode()
    except UnicodeEncodeError:
        return BYTES + os.fsencode(path).decode("latin-1")
    return path


def remove(snapshot: Snapshot, ids: Sequence[str]) -> int:
    """Delete items with their vectors of all generations and their pictures; how many there were."""
    every = list(ids)
    for table in snapshot.tables[1:]:
        snapshot.connection.execute(f"DELETE FROM {table} WHERE id = ANY(%s)", (every,))
    snapshot.connection.execute("DELETE FROM pictures WHERE id = ANY(%s)", (every,))
    return snapshot.connection.execute(f"DELETE FROM {snapshot.table} WHERE id = ANY(%s)", (every,)).rowcount


def select(snapshot: Snapshot, rest: str, parameters: Sequence[Any]) -> list[Item]:
    """The items of a statement that begins after FROM its table."""
    return [item for item, _ in _selected(snapshot, rest, parameters)]


def select_vectors(snapshot: Snapshot, rest: str, parameters: Sequence[Any]) -> tuple[list[Item], Vectors]:
    """The same with their vectors."""
    rows = list(_selected(snapshot, rest, parameters, ", vector"))
    vectors = np.stack([row[0] for _, row in rows]) if rows else np.empty((0, snapshot.identity.dim), np.float32)
    return [item for item, _ in rows], vectors


def _selected(
    snapshot: Snapshot, rest: str, parameters: Sequence[Any], more: str = ""
) -> Iterator[tuple[Item, tuple[Any, ...]]]:
    names, own = columns_of(snapshot), list(own_columns(snapshot.names))
    statement = f"SELECT {', '.join(names)}{more} FROM {snapshot.table} {rest}"
    for row in snapshot.connection.execute(statement, parameters, binary=True):
        yield as_item(row[: len(names)], own), row[len(names) :]


def columns_of(snapshot: Snapshot) -> list[str]:
    """What the table says of an item, in the order that `as_item` takes it."""
    return ["added", *FIELDS, *(physical for physical, _ in own_columns(snapshot.names).values())]


def as_item(row: Sequence[Any], own: Sequence[str]) -> Item:
    """The item of a row of `columns_of`; `own` are the user's names of the columns at its end."""
    added, id_, path = row[:3]
    path = os.fsdecode(path[1:].encode("latin-1")) if path is not None and path.startswith(BYTES) else path
    first = len(FIELDS) + 1
    return item_of(added, (id_, path, *row[3:first], *map(plain, row[first:])), own)


def items(snapshot: Snapshot, ids: Sequence[str]) -> list[Item]:
    """Those of these items that exist, in the order of `ids`."""
    by_id = {item.id: item for item in select(snapshot, "WHERE id = ANY(%s)", (list(ids),))}
    return [by_id[one] for one in dict.fromkeys(ids) if one in by_id]


def vectors_of(snapshot: Snapshot, ids: Sequence[str]) -> Vectors:
    by_id: dict[str, Any] = dict(
        snapshot.connection.execute(
            f"SELECT id, vector FROM {snapshot.table} WHERE id = ANY(%s)", (list(ids),), binary=True
        ).fetchall()
    )
    check_known(snapshot, ids, by_id)
    return np.stack([by_id[one] for one in ids]) if ids else np.empty((0, snapshot.identity.dim), np.float32)


def check_known(snapshot: Snapshot, ids: Sequence[str], known: Any) -> None:
    missing = next((one for one in ids if one not in known), None)
    if missing is not None:
        statement = f"SELECT id FROM {snapshot.table} WHERE id >= %s ORDER BY id LIMIT 20"
        raise UnknownItemError(missing, [row[0] for row in snapshot.connection.execute(statement, (missing[:3],))])


def at_paths(snapshot: Snapshot, paths: Sequence[str]) -> dict[str, Item]:
    there = select(snapshot, "WHERE path = ANY(%s)", ([_as_stored(path) for path in paths],))
    return {item.path: item for item in there if item.path is not None}


def one(snapshot: Snapshot, statement: str, parameters: Sequence[Any] = ()) -> Any:
    """The only value of a statement; None where it has no row."""
    row = snapshot.connection.execute(statement, parameters).fetchone()
    return None if row is None else plain(row[0])
