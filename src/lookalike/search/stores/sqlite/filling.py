"""The next generation of an index in SQLite, filled beside the one that answers."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lookalike.search.items import Identity, Item, Vectors
from lookalike.search.stores.fields import checked
from lookalike.search.stores.sqlite import generations, rows
from lookalike.search.stores.sqlite.database import SqliteDatabase
from lookalike.search.stores.sqlite.generations import identity_of


class SqliteGenerations:
    """See `Generations`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self.database = database

    def begin(self, identity: Identity) -> Identity:
        with self.database.writing() as connection:
            for (number,) in connection.execute("SELECT number FROM generations WHERE current = 0").fetchall():
                connection.execute("DELETE FROM generations WHERE number = ?", (number,))
                connection.execute(f"DROP TABLE vectors_{number}")
            new = replace(identity, generation=identity_of(connection).generation + 1)
            generations.begin(connection, new, current=False)
            return new

    def upcoming(self) -> Identity | None:
        with self.database.reading() as connection:
            return identity_of(connection, current=False)

    def unfilled(self, generation: int, count: int, after: str = "") -> list[Item]:
        statement = f"""SELECT key FROM items WHERE id > ? AND key NOT IN (SELECT key FROM vectors_{generation})
                        ORDER BY id LIMIT ?"""
        with self.database.reading() as connection:
            keys = np.fromiter((row[0] for row in connection.execute(statement, (after, count))), np.int64)
            return rows.select(connection, keys)

    def fill(self, generation: int, ids: Sequence[str], vectors: Vectors) -> None:
        with self.database.writing() as connection:
            identity = identity_of(connection, current=False)
            assert identity is not None and identity.generation == generation  # noqa: PT018
            keys = rows.keys_of(connection, ids, complete=False)  # some may have been removed meanwhile
            named = zip(ids, checked(vectors, len(ids), identity.dim), strict=True)
            statement = f"INSERT OR REPLACE INTO vectors_{generation} VALUES (?, ?)"
            connection.executemany(statement, [(keys[one], vector.tobytes()) for one, vector in named if one in keys])

    def switch(self, generation: int) -> int:
        count = f"SELECT count(*) FROM items WHERE key NOT IN (SELECT key FROM vectors_{generation})"
        with self.database.writing() as connection:
            old = identity_of(connection).generation
            missing = int(connection.execute(count).fetchone()[0])
            if not missing:
                connection.execute("DELETE FROM generations WHERE number = ?", (old,))
                connection.execute("UPDATE generations SET current = 1 WHERE number = ?", (generation,))
                connection.execute(f"DROP TABLE vectors_{old}")
            return missing
