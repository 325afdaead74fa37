"""The generations of an index in SQLite: which model made their vectors, and the vectors themselves."""

import sqlite3
from collections.abc import Sequence
from typing import Literal, cast, get_args, overload

from lookalike.geometry import Geometry
from lookalike.search.items import Identity, Vectors
from lookalike.search.stores.fields import WIDEST


def begin(connection: sqlite3.Connection, identity: Identity, current: bool) -> None:
    connection.execute(
        "INSERT INTO generations VALUES (?, ?, ?, ?, ?)",
        (identity.generation, identity.fingerprint, identity.geometry, identity.dim, int(current)),
    )
    connection.execute(f"CREATE TABLE vectors_{identity.generation} (key INTEGER PRIMARY KEY, vector BLOB NOT NULL)")


@overload
def identity_of(connection: sqlite3.Connection) -> Identity: ...
@overload
def identity_of(connection: sqlite3.Connection, current: Literal[False]) -> Identity | None: ...
def identity_of(connection: sqlite3.Connection, current: bool = True) -> Identity | None:
    """The generation that answers, or the one that is being filled."""
    statement = "SELECT fingerprint, geometry, dim, number FROM generations WHERE current = ?"
    row = connection.execute(statement, (int(current),)).fetchone()
    if row is None and current:
        raise sqlite3.DatabaseError("malformed index: no generation answers")
    if row is None:
        return None
    fingerprint, geometry, dim, number = row
    counts = all(isinstance(count, int) and count > 0 for count in (dim, number))
    if not (counts and dim <= WIDEST and isinstance(fingerprint, str | None) and geometry in get_args(Geometry)):
        raise sqlite3.DatabaseError("malformed index: nobody can tell what its vectors are")
    return Identity(fingerprint, cast(Geometry, geometry), dim, number)


def insert_vectors(connection: sqlite3.Connection, generation: int, keys: Sequence[int], vectors: Vectors) -> None:
    connection.executemany(
        f"INSERT INTO vectors_{generation} VALUES (?, ?)",
        ((key, vector.tobytes()) for key, vector in zip(keys, vectors, strict=True)),
    )
