"""The next generation of an index in SQLite, filled beside the one that answers."""

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lookalike.search.items import Identity, Item, Vectors
from lookalike.search.stores import generations, rows
from lookalike.search.stores.fields import checked
from lookalike.search.stores.generations import identity_of


def begin_next(connection: sqlite3.Connection, identity: Identity) -> Identity:
    """Room for another model's vectors; an unfinished one is dropped."""
    for (number,) in connection.execute("SELECT number FROM generations WHERE current = 0").fetchall():
        connection.execute("DELETE FROM generations WHERE number = ?", (number,))
        connection.execute(f"DROP TABLE vectors_{number}")
    new = replace(identity, generation=identity_of(connection).generation + 1)
    generations.begin(connection, new, current=False)
    return new


def unfilled(connection: sqlite3.Connection, generation: int, count: int, after: str) -> list[Item]:
    statement = f"""SELECT key FROM items WHERE id > ? AND key NOT IN (SELECT key FROM vectors_{generation})
                    ORDER BY id LIMIT ?"""
    keys = np.fromiter((row[0] for row in connection.execute(statement, (after, count))), np.int64)
    return rows.select(connection, keys)


def fill(connection: sqlite3.Connection, generation: int, ids: Sequence[str], vectors: Vectors) -> None:
    identity = identity_of(connection, current=False)
    assert identity is not None and identity.generation == generation  # noqa: PT018
    keys = rows.keys_of(connection, ids, complete=False)  # some may have been removed meanwhile
    named = zip(ids, checked(vectors, len(ids), identity.dim), strict=True)
    statement = f"INSERT OR REPLACE INTO vectors_{generation} VALUES (?, ?)"
    connection.executemany(statement, [(keys[one], vector.tobytes()) for one, vector in named if one in keys])


def switch(connection: sqlite3.Connection, generation: int) -> int:
    """Let the new generation answer if it is complete; how many items have no vector in it."""
    old = identity_of(connection).generation
    missing = connection.execute(
        f"SELECT count(*) FROM items WHERE key NOT IN (SELECT key FROM vectors_{generation})"
    ).fetchone()[0]
    if not missing:
        connection.execute("DELETE FROM generations WHERE number = ?", (old,))
        connection.execute("UPDATE generations SET current = 1 WHERE number = ?", (generation,))
        connection.execute(f"DROP TABLE vectors_{old}")
    return int(missing)
