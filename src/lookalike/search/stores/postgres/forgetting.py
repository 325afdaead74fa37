"""Items that an index on PostgreSQL must forget: their tables are written anew.

VACUUM leaves the bytes of deleted rows in their pages until something else is written there; only VACUUM FULL writes
the table, what it keeps elsewhere (TOAST) and its indexes again. It waits for others and makes them wait. What the
server knows of columns, such as their most frequent values, is a table, too: only the owner of the database may do so
with that.
"""

from collections.abc import Sequence

from lookalike.search.stores import Forgotten
from lookalike.search.stores.postgres import rows
from lookalike.search.stores.postgres.database import Connection, PostgresDatabase, Snapshot

BESIDE = ("pictures", "marks", "asked", "facts")
STATISTICS = "pg_catalog.pg_statistic"
BEYOND = (
    "what transactions that were open on the server meanwhile may still see, until the command is repeated after them",
    "the server's log of changes (pg_wal and its archive), its replicas until they have caught up, its backups",
    "copies and backups of the index elsewhere, also in the history of the file system and on the medium itself",
)


def forget(database: PostgresDatabase, ids: Sequence[str]) -> Forgotten:
    """Remove items, with every mark of them, and write anew every table that held them."""
    items, marks, tables = database.write(_removed, list(ids))
    for table in tables:
        database.plain(lambda connection, table=table: connection.execute(f"VACUUM (FULL, ANALYZE) {table}"))  # type: ignore[misc]
    if not database.plain(_owns):
        left = (
            f"samples of columns that the server keeps in {STATISTICS}, until its owner runs VACUUM FULL {STATISTICS}"
        )
        return Forgotten(items, marks, tables, [*BEYOND, left])
    database.plain(lambda connection: connection.execute(f"VACUUM FULL {STATISTICS}"))
    return Forgotten(items, marks, [*tables, STATISTICS], BEYOND)


def _owns(connection: Connection) -> bool:
    """Whether this user owns the database."""
    owns = "SELECT pg_has_role(datdba, 'USAGE') FROM pg_database WHERE datname = current_database()"
    row = connection.execute(owns).fetchone()
    return row is not None and bool(row[0])


def _removed(snapshot: Snapshot, ids: list[str]) -> tuple[int, int, list[str]]:
    named = [f"item:{one}" for one in ids]
    statement = "DELETE FROM marks WHERE item = ANY(%s) OR query_item = ANY(%s) OR query = ANY(%s)"
    marks = snapshot.connection.execute(statement, (ids, ids, named)).rowcount
    snapshot.connection.execute("DELETE FROM asked WHERE query NOT IN (SELECT query FROM marks)")
    return rows.remove(snapshot, ids), marks, [*snapshot.tables, *BESIDE]
