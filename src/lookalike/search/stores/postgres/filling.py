"""The next generation of an index, filled beside the one that answers."""

from collections.abc import Sequence

import numpy as np

from lookalike.search.items import Identity, Item, Vectors
from lookalike.search.stores import GenerationError, fields
from lookalike.search.stores.fields import FIELDS, IS_MAPPED, SIGN, SIGNED, UNSIGNED, own_columns
from lookalike.search.stores.postgres import schema
from lookalike.search.stores.postgres.database import PostgresDatabase, Snapshot, table_of
from lookalike.search.stores.postgres.rows import note_length, one, select


class PostgresGenerations:
    """See `Generations`."""

    def __init__(self, database: PostgresDatabase) -> None:
        self.database = database

    def begin(self, identity: Identity) -> Identity:
        return self.database.write(schema.begin_next, identity)

    def upcoming(self) -> Identity | None:
        return self.database.read(lambda snapshot: snapshot.upcoming)

    def unfilled(self, generation: int, count: int, after: str = "") -> list[Item]:
        return self.database.read(_unfilled, generation, count, after)

    def fill(self, new: Identity, items: Sequence[Item], vectors: Vectors, mapped: bool = False) -> None:
        self.database.write(_fill, new, items, vectors, mapped)

    def filled(self, new: Identity) -> tuple[list[str], Vectors]:
        return self.database.read(_filled, new)

    def switch(self, generation: int) -> int:
        return self.database.write(schema.switch, generation)

    def mapped(self, count: int, after: str = "") -> list[Item]:
        return self.database.read(_mapped, count, after)

    def mapped_count(self) -> int:
        return int(self.database.read(lambda now: one(now, f"SELECT count(*) FROM {now.table} WHERE {IS_MAPPED}")))

    def settle(self, generation: int, ids: Sequence[str], vectors: Vectors) -> None:
        self.database.write(_settle, generation, ids, vectors)


def _unfilled(snapshot: Snapshot, generation: int, count: int, after: str) -> list[Item]:
    missing = f"NOT EXISTS (SELECT FROM {table_of(generation)} AS new WHERE new.key = {snapshot.table}.key)"
    return select(snapshot, f"WHERE id > %s AND {missing} ORDER BY id LIMIT {count}", (after,))


def _fill(snapshot: Snapshot, new: Identity, items: Sequence[Item], vectors: Vectors, mapped: bool) -> None:
    """Copy items into the next generation, with their vectors there.

    What another client removes in the same moment may stay behind: `schema.switch` drops it.
    """
    if snapshot.upcoming != new:
        raise GenerationError
    vectors = fields.checked(vectors, len(items), new.dim)
    note_length(snapshot, new.generation, vectors)
    own = (physical for physical, _ in own_columns(snapshot.names).values())
    same = ["key", "added", *(name for name in FIELDS if name != "digest"), *own]
    written, every = ", ".join(same), (*same, "digest", "vector")
    statement = f"""INSERT INTO {table_of(new.generation)} ({written}, digest, vector)
                    SELECT {written}, {SIGNED if mapped else UNSIGNED}, %s FROM {snapshot.table}
                    WHERE id = %s AND {UNSIGNED} IS NOT DISTINCT FROM %s
                    ON CONFLICT (id) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in every)}"""
    pictures = [(item.id, item.stamp and item.stamp.digest) for item in items]
    rows = [(vector, *picture) for vector, picture in zip(vectors, pictures, strict=True)]
    snapshot.connection.cursor().executemany(statement, rows)


def _filled(snapshot: Snapshot, new: Identity) -> tuple[list[str], Vectors]:
    if snapshot.upcoming != new:
        raise GenerationError
    statement = f"""SELECT id, new.vector FROM {table_of(new.generation)} AS new JOIN {snapshot.table} USING (key, id)
                    WHERE substr(new.digest, 1, 1) IS DISTINCT FROM '{SIGN}' ORDER BY id"""
    found = snapshot.connection.execute(statement, binary=True).fetchall()
    vectors = np.stack([vector for _, vector in found]) if found else np.empty((0, new.dim), np.float32)
    return [id_ for id_, _ in found], vectors


def _mapped(snapshot: Snapshot, count: int, after: str) -> list[Item]:
    return select(snapshot, f"WHERE id > %s AND {IS_MAPPED} ORDER BY id LIMIT {count}", (after,))


def _settle(snapshot: Snapshot, generation: int, ids: Sequence[str], vectors: Vectors) -> None:
    if generation != snapshot.identity.generation:
        raise GenerationError
    vectors = fields.checked(vectors, len(ids), snapshot.identity.dim)
    note_length(snapshot, generation, vectors)
    statement = f"UPDATE {snapshot.table} SET vector = %s, digest = {UNSIGNED} WHERE id = %s AND {IS_MAPPED}"
    snapshot.connection.cursor().executemany(statement, list(zip(vectors, ids, strict=True)))
