"""The next generation of an index, filled beside the one that answers."""

from collections.abc import Sequence

from lookalike.search.items import Item, Vectors
from lookalike.search.stores import fields
from lookalike.search.stores.fields import FIELDS, own_columns
from lookalike.search.stores.postgres.database import Snapshot, table_of
from lookalike.search.stores.postgres.rows import note_length, select


def unfilled(snapshot: Snapshot, generation: int, count: int, after: str) -> list[Item]:
    missing = f"NOT EXISTS (SELECT FROM {table_of(generation)} AS new WHERE new.key = {snapshot.table}.key)"
    return select(snapshot, f"WHERE id > %s AND {missing} ORDER BY id LIMIT {count}", (after,))


def fill(snapshot: Snapshot, generation: int, ids: Sequence[str], vectors: Vectors) -> None:
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
