"""Marks of people in SQLite: whether a hit is right for a query."""

import sqlite3
import time
from collections.abc import Sequence

from lookalike.search.items import Mark
from lookalike.search.stores.sqlite.cells import BYTES, MAYBE_TEXT, NUMBER, TEXT, WHOLE, typed
from lookalike.search.stores.sqlite.database import SqliteDatabase

# an index made before there were marks gets the tables with its first one
SCHEMA = (
    """CREATE TABLE IF NOT EXISTS marks (number INTEGER PRIMARY KEY AUTOINCREMENT, query TEXT NOT NULL, query_item TEXT,
       item TEXT NOT NULL, correct INTEGER NOT NULL, time REAL NOT NULL, author TEXT, UNIQUE (query, item))""",
    "CREATE TABLE IF NOT EXISTS asked (query TEXT PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID",
)


class SqliteMarks:
    """See `Marks`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self.database = database

    def add(self, mark: Mark, picture: bytes | None = None) -> int:
        with self.database.writing() as connection:
            for statement in SCHEMA:
                connection.execute(statement)
            if not _signed(connection):
                connection.execute("ALTER TABLE marks ADD COLUMN author TEXT")
            connection.execute("DELETE FROM marks WHERE query = ? AND item = ?", (mark.query, mark.item))
            if picture is not None:
                connection.execute("INSERT OR REPLACE INTO asked VALUES (?, ?)", (mark.query, picture))
            when = time.time() if mark.at is None else mark.at
            fields = (mark.query, mark.query_item, mark.item, int(mark.right), when, mark.by)
            statement = "INSERT INTO marks (query, query_item, item, correct, time, author) VALUES (?, ?, ?, ?, ?, ?)"
            return int(connection.execute(statement, fields).lastrowid or 0)

    def remove(self, number: int) -> bool:
        with self.database.writing() as connection:
            if not _there(connection):
                return False
            gone = connection.execute("DELETE FROM marks WHERE number = ?", (number,)).rowcount
            connection.execute("DELETE FROM asked WHERE query NOT IN (SELECT query FROM marks)")
            return bool(gone)

    def every(self) -> list[Mark]:
        return self._listed("")

    def of(self, query: str) -> list[Mark]:
        return self._listed("WHERE query = ?", query)

    def _listed(self, where: str, *values: str) -> list[Mark]:
        with self.database.reading() as connection:
            author = "author" if _signed(connection) else "NULL"
            statement = (
                f"SELECT query, query_item, item, correct, number, {author}, time FROM marks {where} ORDER BY number"
            )
            rows = connection.execute(statement, values) if _there(connection) else ()
            cells = (typed(row, TEXT, MAYBE_TEXT, TEXT, WHOLE, WHOLE, MAYBE_TEXT, NUMBER) for row in rows)
            return [Mark(query, whole, item, bool(right), *rest) for query, whole, item, right, *rest in cells]

    def count(self) -> int:
        with self.database.reading() as connection:
            return int(connection.execute("SELECT count(*) FROM marks").fetchone()[0]) if _there(connection) else 0

    def picture(self, query: str) -> bytes | None:
        with self.database.reading() as connection:
            if not _there(connection):
                return None
            row = connection.execute("SELECT content FROM asked WHERE query = ?", (query,)).fetchone()
            return None if row is None else bytes(typed(row, BYTES)[0])


def forget(connection: sqlite3.Connection, ids: Sequence[str]) -> int:
    """Delete the marks that speak of items, and the pictures of queries that have no others; how many marks."""
    if not _there(connection):
        return 0
    statement = "DELETE FROM marks WHERE item = ? OR query_item = ? OR query = ?"
    gone = connection.executemany(statement, [(one, one, f"item:{one}") for one in ids]).rowcount
    connection.execute("DELETE FROM asked WHERE query NOT IN (SELECT query FROM marks)")
    return max(0, gone)


def _signed(connection: sqlite3.Connection) -> bool:
    """Marks of 0.2.0 do not say who made them."""
    return any(name == "author" for _, name, *_ in connection.execute("PRAGMA table_info(marks)"))


def _there(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'marks'").fetchone())
