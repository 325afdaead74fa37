"""The next generation of an index, filled beside the one that answers."""

from collections.abc import Sequence

from lookalike.search.items import Identity, Item, Vectors
from lookalike.search.stores import fields
from lookalike.search.stores.fields import FIELDS, own_columns
from lookalike.search.stores.postgres import schema
from lookalike.search.stores.postgres.database import PostgresDatabase, Snapshot, table_of
from lookalike.search.stores.postgres.rows import note_length, select


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

    def fill(self, generation: int, ids: Sequence[str], vectors: Vectors) -> None:
        self.database.write(_fill, generation, ids, vectors)

    def switch(self, generation: int) -> int:
        return self.database.write(schema.switch, generation)


def _unfilled(snapshot: Snapshot, generation: int, count: int, after: str) -> list[Item]:
    missing = f"NOT EXISTS (SELECT FROM {table_of(generation)} AS new WHERE new.key = {snapshot.table}.key)"
    return select(snapshot, f"WHERE id > %s AND {missing} ORDER BY id LIMIT {count}", (after,))


def _fill(snapshot: Snapshot, generation: int, ids: Sequence[str], vectors: Vectors) -> None:
    """Copy items into the next generation, with their vectors there."""
    upcoming = snapshot.upcoming
    assert upcoming is not None and upcoming.generation == generation  # noqa: PT018
    vectors = fields.checked(vectors, len(ids), upcoming.dim)
    note_length(snapshot, generation, vectors)
    own = (physical for physical, _ in own_columns(snapshot.names).values())
    names = ", ".join(("key", "added", *FIELDS, *own))
    statement = f"""INSERT INTO {table_of(generation)} ({names}, vector) SELECT {names}, %s FROM {snapshot.table}
                    WHERE id = %s ON CONFLICT (id) DO UPDATE SET vector = excluded.vector"""
    snapshot.connection.cursor().executemany(statement, list(zip(vectors, ids, strict=True)))
