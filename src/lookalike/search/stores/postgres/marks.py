"""Marks of people, kept on a server; see `stores.marks`."""

import time

from lookalike.search.items import Mark
from lookalike.search.stores.postgres.database import Snapshot
from lookalike.search.stores.postgres.rows import one


def add(snapshot: Snapshot, mark: Mark, picture: bytes | None) -> int:
    """Keep a mark, in the place of an earlier one of the same query and item; its number."""
    connection = snapshot.connection
    connection.execute("DELETE FROM marks WHERE query = %s AND item = %s", (mark.query, mark.item))
    if picture is not None:
        connection.execute(
            "INSERT INTO asked VALUES (%s, %s) ON CONFLICT (query) DO UPDATE SET content = excluded.content",
            (mark.query, picture),
        )
    statement = """INSERT INTO marks (query, query_item, item, correct, time) VALUES (%s, %s, %s, %s, %s)
                   RETURNING number"""
    return int(one(snapshot, statement, (mark.query, mark.query_item, mark.item, mark.right, time.time())))


def remove(snapshot: Snapshot, number: int) -> bool:
    """Take a mark back; whether there was one."""
    gone = snapshot.connection.execute("DELETE FROM marks WHERE number = %s", (number,)).rowcount
    snapshot.connection.execute("DELETE FROM asked WHERE query NOT IN (SELECT query FROM marks)")
    return bool(gone)


def every(snapshot: Snapshot) -> list[Mark]:
    statement = "SELECT query, query_item, item, correct, number FROM marks ORDER BY number"
    return [Mark(*row) for row in snapshot.connection.execute(statement)]


def picture(snapshot: Snapshot, query: str) -> bytes | None:
    content = one(snapshot, "SELECT content FROM asked WHERE query = %s", (query,))
    return None if content is None else bytes(content)


def count(snapshot: Snapshot) -> int:
    return int(one(snapshot, "SELECT count(*) FROM marks"))
