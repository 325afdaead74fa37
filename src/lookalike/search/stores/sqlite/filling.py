"""The next generation of an index in SQLite, filled beside the one that answers."""

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lookalike.search.items import Identity, Item, Vectors
from lookalike.search.stores import GenerationError
from lookalike.search.stores.fields import IS_MAPPED, SIGNED, UNSIGNED, checked
from lookalike.search.stores.sqlite import generations, rows
from lookalike.search.stores.sqlite.cells import vector_of
from lookalike.search.stores.sqlite.database import SqliteDatabase
from lookalike.search.stores.sqlite.documents import SqliteDocuments
from lookalike.search.stores.sqlite.generations import identity_of

MAPPED = "CREATE TABLE IF NOT EXISTS mapped (key INTEGER PRIMARY KEY)"  # in the upcoming generation; then items say so


class SqliteGenerations:
    """See `Generations`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self.database = database

    def begin(self, identity: Identity) -> Identity:
        with self.database.writing() as connection:
            for (number,) in connection.execute("SELECT number FROM generations WHERE current = 0").fetchall():
                connection.execute("DELETE FROM generations WHERE number = ?", (number,))
                connection.execute(f"DROP TABLE vectors_{number}")
            connection.execute("DROP TABLE IF EXISTS mapped")
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

    def fill(self, new: Identity, items: Sequence[Item], vectors: Vectors, mapped: bool = False) -> None:
        vectors = checked(vectors, len(items), new.dim)
        same = f"FROM items WHERE id = ? AND {UNSIGNED} IS ?"
        pictures = [(item.id, item.stamp and item.stamp.digest) for item in items]
        filled = [(vector.tobytes(), *picture) for vector, picture in zip(vectors, pictures, strict=True)]
        mark = f"INSERT OR IGNORE INTO mapped SELECT key {same}"
        unmark = f"DELETE FROM mapped WHERE key = (SELECT key {same})"
        with self.database.writing() as connection:
            _check_upcoming(connection, new)
            connection.executemany(f"INSERT OR REPLACE INTO vectors_{new.generation} SELECT key, ? {same}", filled)
            connection.execute(MAPPED)
            connection.executemany(mark if mapped else unmark, pictures)

    def filled(self, new: Identity) -> tuple[list[str], Vectors]:
        with self.database.reading() as connection:
            _check_upcoming(connection, new)
            known = connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'mapped'").fetchone()[0]
            real = "WHERE key NOT IN (SELECT key FROM mapped)" if known else ""
            statement = f"SELECT id, vector FROM items JOIN vectors_{new.generation} USING (key) {real} ORDER BY id"
            found = connection.execute(statement).fetchall()
            vectors = np.array([vector_of(content, new.dim) for _, content in found], np.float32)
        return [id_ for id_, _ in found], checked(vectors.reshape(len(found), new.dim), len(found), new.dim)

    def switch(self, generation: int) -> int:
        count = f"SELECT count(*) FROM items WHERE key NOT IN (SELECT key FROM vectors_{generation})"
        with self.database.writing() as connection:
            old = identity_of(connection).generation
            if old >= generation:  # another process was faster
                return 0
            missing = int(connection.execute(count).fetchone()[0])
            if not missing:
                connection.execute("DELETE FROM generations WHERE number = ?", (old,))
                connection.execute("UPDATE generations SET current = 1 WHERE number = ?", (generation,))
                connection.execute(f"DROP TABLE vectors_{old}")
                connection.execute(MAPPED)
                connection.execute(f"UPDATE items SET digest = {UNSIGNED} WHERE {IS_MAPPED}")
                connection.execute(f"UPDATE items SET digest = {SIGNED} WHERE key IN (SELECT key FROM mapped)")
                connection.execute("DROP TABLE mapped")
            return missing

    def mapped(self, count: int, after: str = "") -> list[Item]:
        statement = f"SELECT key FROM items WHERE id > ? AND {IS_MAPPED} ORDER BY id LIMIT ?"
        with self.database.reading() as connection:
            keys = np.fromiter((row[0] for row in connection.execute(statement, (after, count))), np.int64)
            return rows.select(connection, keys)

    def mapped_count(self) -> int:
        with self.database.reading() as connection:
            return int(connection.execute(f"SELECT count(*) FROM items WHERE {IS_MAPPED}").fetchone()[0])

    def settle(self, generation: int, ids: Sequence[str], vectors: Vectors) -> None:
        with self.database.writing() as connection:
            identity = identity_of(connection)
            if generation != identity.generation:
                raise GenerationError
            named = dict(zip(ids, checked(vectors, len(ids), identity.dim), strict=True))
            keys = list(rows.keys_of(connection, ids, complete=False).values())
            items = [item for item in rows.select(connection, np.array(keys, np.int64)) if item.mapped]
            pictures = SqliteDocuments(self.database).pictures([item.id for item in items])
            real = np.stack([named[item.id] for item in items]) if items else np.empty((0, identity.dim), np.float32)
            rows.put(connection, [replace(item, mapped=False) for item in items], real, pictures)


def _check_upcoming(connection: sqlite3.Connection, new: Identity) -> None:
    if identity_of(connection, current=False) != new:
        raise GenerationError
