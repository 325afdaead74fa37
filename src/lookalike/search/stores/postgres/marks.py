"""Marks of people, kept on a server."""

import time

from lookalike.search.items import Mark
from lookalike.search.stores.postgres.database import PostgresDatabase, Snapshot
from lookalike.search.stores.postgres.rows import one


class PostgresMarks:
    """See `Marks`."""

    def __init__(self, database: PostgresDatabase) -> None:
        self.database = database

    def add(self, mark: Mark, picture: bytes | None = None) -> int:
        return self.database.write(_add, mark, picture)

    def remove(self, number: int) -> bool:
        return self.database.write(_remove, number)

    def every(self) -> list[Mark]:
        return self.database.read(_listed, "")

    def of(self, query: str) -> list[Mark]:
        return self.database.read(_listed, "WHERE query = %s", query)

    def count(self) -> int:
        return int(self.database.read(one, "SELECT count(*) FROM marks"))

    def picture(self, query: str) -> bytes | None:
        content = self.database.read(one, "SELECT content FROM asked WHERE query = %s", (query,))
        return None if content is None else bytes(content)


def _add(snapshot: Snapshot, mark: Mark, picture: bytes | None) -> int:
    """Keep a mark, in the place of an earlier one of the same query and item; its number."""
    connection = snapshot.connection
    connection.execute("DELETE FROM marks WHERE query = %s AND item = %s", (mark.query, mark.item))
    if picture is not None:
        connection.execute(
            "INSERT INTO asked VALUES (%s, %s) ON CONFLICT (query) DO UPDATE SET content = excluded.content",
            (mark.query, picture),
        )
    statement = """INSERT INTO marks (query, query_item, item, correct, time, author) VALUES (%s, %s, %s, %s, %s, %s)
                   RETURNING number"""
    when = time.time() if mark.at is None else mark.at
    return int(one(snapshot, statement, (mark.query, mark.query_item, mark.item, mark.right, when, mark.by)))


def _remove(snapshot: Snapshot, number: int) -> bool:
    """Take a mark back; whether there was one."""
    gone = snapshot.connection.execute("DELETE FROM marks WHERE number = %s", (number,)).rowcount
    snapshot.connection.execute("DELETE FROM asked WHERE query NOT IN (SELECT query FROM marks)")
    return bool(gone)


def _listed(snapshot: Snapshot, where: str, *values: str) -> list[Mark]:
    columns = "query, query_item, item, correct, number, author, time"
    rows = snapshot.connection.execute(f"SELECT {columns} FROM marks {where} ORDER BY number", values)
    return [Mark(*row) for row in rows]
