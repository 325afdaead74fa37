"""Marks of people: whether a hit is right for a query. They change no search; `lookalike labels` writes them out.

The picture of a marked query is kept with its marks, until the last of them is taken back.
"""

import sqlite3
import time

from lookalike.search.items import Mark

# an index made before there were marks gets the tables with its first one
SCHEMA = (
    """CREATE TABLE IF NOT EXISTS marks (number INTEGER PRIMARY KEY AUTOINCREMENT, query TEXT NOT NULL, query_item TEXT,
       item TEXT NOT NULL, correct INTEGER NOT NULL, time REAL NOT NULL, UNIQUE (query, item))""",
    "CREATE TABLE IF NOT EXISTS asked (query TEXT PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID",
)


def add(connection: sqlite3.Connection, mark: Mark, picture: bytes | None) -> int:
    """Keep a mark, in the place of an earlier one of the same query and item; its number."""
    for statement in SCHEMA:
        connection.execute(statement)
    connection.execute("DELETE FROM marks WHERE query = ? AND item = ?", (mark.query, mark.item))
    if picture is not None:
        connection.execute("INSERT OR REPLACE INTO asked VALUES (?, ?)", (mark.query, picture))
    fields = (mark.query, mark.query_item, mark.item, int(mark.right), time.time())
    cursor = connection.execute(
        "INSERT INTO marks (query, query_item, item, correct, time) VALUES (?, ?, ?, ?, ?)", fields
    )
    return int(cursor.lastrowid or 0)


def remove(connection: sqlite3.Connection, number: int) -> bool:
    """Take a mark back; whether there was one."""
    if not _there(connection):
        return False
    gone = connection.execute("DELETE FROM marks WHERE number = ?", (number,)).rowcount
    connection.execute("DELETE FROM asked WHERE query NOT IN (SELECT query FROM marks)")
    return bool(gone)


def every(connection: sqlite3.Connection) -> list[Mark]:
    """All marks, oldest first."""
    if not _there(connection):
        return []
    statement = "SELECT query, query_item, item, correct, number FROM marks ORDER BY number"
    return [Mark(query, whole, item, bool(right), number)
            for query, whole, item, right, number in connection.execute(statement)]  # fmt: skip


def picture(connection: sqlite3.Connection, query: str) -> bytes | None:
    """The picture of a marked query."""
    if not _there(connection):
        return None
    row = connection.execute("SELECT content FROM asked WHERE query = ?", (query,)).fetchone()
    return None if row is None else bytes(row[0])


def count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM marks").fetchone()[0]) if _there(connection) else 0


def _there(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'marks'").fetchone())
