"""Items of an index in SQLite block by block, and what its columns hold."""

import sqlite3
from collections.abc import Sequence

import numpy as np

from lookalike.search.filters import Filter, Kind, as_sql
from lookalike.search.items import Item, Value, Vectors
from lookalike.search.stores import Column, GenerationError, Summary
from lookalike.search.stores.sqlite import rows
from lookalike.search.stores.sqlite.cells import VALUES, WHOLE, typed
from lookalike.search.stores.sqlite.generations import identity_of
from lookalike.search.stores.sqlite.segments import Keys


def block(connection: sqlite3.Connection, where: Filter, after: str, count: int) -> Keys:
    """The keys of the next items by id."""
    clause, parameters = as_sql(where, rows.names_of(connection))
    statement = f"SELECT key FROM items WHERE id > ? AND {clause} ORDER BY id LIMIT {count}"
    return np.fromiter((row[0] for row in connection.execute(statement, (after, *parameters))), np.int64)


def scanned(
    connection: sqlite3.Connection, generation: int, where: Filter, after: str, count: int
) -> tuple[list[Item], Vectors]:
    identity, keys = identity_of(connection), block(connection, where, after, count)
    if identity.generation != generation:
        raise GenerationError
    vectors = rows.vectors_of(connection, identity.generation, keys.tolist(), identity.dim)
    return rows.select(connection, keys), vectors


def listed(connection: sqlite3.Connection, where: Filter, after: str, count: int) -> list[Item]:
    return rows.select(connection, block(connection, where, after, count))


def items(connection: sqlite3.Connection, ids: Sequence[str]) -> list[Item]:
    """Those of these items that exist, in the order of `ids`."""
    keys = rows.keys_of(connection, ids, complete=False)
    return rows.select(connection, np.array([keys[one] for one in dict.fromkeys(ids) if one in keys], np.int64))


def vectors_of(connection: sqlite3.Connection, ids: Sequence[str]) -> Vectors:
    identity, keys = identity_of(connection), rows.keys_of(connection, ids)
    return rows.vectors_of(connection, identity.generation, [keys[one] for one in ids], identity.dim)


def at_paths(connection: sqlite3.Connection, paths: Sequence[str]) -> dict[str, Item]:
    there = rows.select(connection, rows.keys_at(connection, paths))
    return {item.path: item for item in there if item.path is not None}


def count(connection: sqlite3.Connection, where: Filter) -> int:
    clause, parameters = as_sql(where, rows.names_of(connection))
    return int(connection.execute(f"SELECT count(*) FROM items WHERE {clause}", parameters).fetchone()[0])


def columns(connection: sqlite3.Connection) -> dict[str, Kind]:
    return {name: kind for name, (_, kind) in rows.names_of(connection).items()}


def summary(connection: sqlite3.Connection, names: Sequence[str], values: int, newest: int) -> Summary:
    kinds = {name: kind for name, (_, kind) in rows.names_of(connection).items()}
    summarised = {name: column(connection, rows.physical(connection, name), kinds[name], values) for name in names}
    keys = connection.execute("SELECT key FROM items ORDER BY key DESC LIMIT ?", (newest,))
    return Summary(summarised, rows.select(connection, np.fromiter((row[0] for row in keys), np.int64)))


def column(connection: sqlite3.Connection, name: str, kind: Kind, values: int) -> Column:
    """What a column of the table holds."""
    if kind == "number":
        least, most = (f"SELECT {which}({name}) FROM items" for which in ("min", "max"))  # one each: by the index
        low, high = (typed(connection.execute(end).fetchone(), VALUES[kind])[0] for end in (least, most))
        return Column(kind, least=low, most=high)
    distinct = connection.execute(f"SELECT count(DISTINCT {name}) FROM items").fetchone()[0]
    statement = f"""SELECT {name}, count(*) AS times FROM items WHERE {name} IS NOT NULL GROUP BY {name}
                    ORDER BY times DESC, {name} LIMIT ?"""
    counts = connection.execute(statement, (values,)).fetchall() if values else []
    return Column(kind, int(distinct), [tuple(typed(row, VALUES[kind], WHOLE)) for row in counts])


def sample(connection: sqlite3.Connection, count: int) -> list[Item]:
    """The next items after keys that are drawn."""
    first, last = connection.execute("SELECT min(key), max(key) FROM items").fetchone()
    if first is None:
        return []
    drawn = np.random.default_rng().integers(first, last, count, endpoint=True)
    statement = "SELECT min(key) FROM items WHERE key >= ?"
    keys = dict.fromkeys(connection.execute(statement, (key,)).fetchone()[0] for key in drawn.tolist())
    return rows.select(connection, np.array(list(keys), np.int64))


def first_of(connection: sqlite3.Connection, column: str, values: Sequence[Value]) -> dict[Value, Item]:
    statement = f"SELECT min(key) FROM items WHERE {rows.physical(connection, column)} = ?"
    keys = [connection.execute(statement, (value,)).fetchone()[0] for value in values]
    known = [(value, key) for value, key in zip(values, keys, strict=True) if key is not None]
    oldest = rows.select(connection, np.array([key for _, key in known], np.int64))
    return {value: item for (value, _), item in zip(known, oldest, strict=True)}


def bytes_of_models(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT coalesce(sum(length(content)), 0) FROM models").fetchone()[0])
