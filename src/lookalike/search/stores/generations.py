"""The generations of an index in SQLite: which model made their vectors, and the vectors themselves."""

import sqlite3
from collections.abc import Sequence
from typing import Literal, cast, overload

import numpy as np

from lookalike.errors import check
from lookalike.geometry import Geometry
from lookalike.search.items import Identity, Vectors

LONGEST = 1e15  # of a vector: the square of a longer one does not fit a float32


def checked(vectors: Vectors, count: int, dim: int) -> Vectors:
    """Vectors as the store keeps them; what cannot be compared is refused."""
    array = np.ascontiguousarray(vectors, np.float32)
    check(array.ndim == 2, f"vectors form a matrix n × d, not an array of shape {array.shape}")
    check(
        array.shape == (count, dim),
        f"{array.shape[0]} vectors of {array.shape[1]} dimensions, expected {count} of {dim}",
    )
    check(bool(np.isfinite(array).all()), "a vector holds NaN or infinity: embed its image again")
    check(
        not len(array) or float(np.abs(array).max()) < LONGEST,
        f"a vector is longer than {LONGEST:g}: normalise the vectors",
    )
    return array


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
    return None if row is None else Identity(row[0], cast(Geometry, row[1]), row[2], row[3])


def insert_vectors(connection: sqlite3.Connection, generation: int, keys: Sequence[int], vectors: Vectors) -> None:
    connection.executemany(
        f"INSERT INTO vectors_{generation} VALUES (?, ?)",
        ((key, vector.tobytes()) for key, vector in zip(keys, vectors, strict=True)),
    )
