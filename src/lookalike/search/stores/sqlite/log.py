"""Who did what, in a table of SQLite that is only added to."""

import sqlite3
import time
from collections.abc import Sequence

from lookalike.search.log import LogEntry
from lookalike.search.stores.sqlite.cells import NUMBER, TEXT, WHOLE, typed
from lookalike.search.stores.sqlite.database import SqliteDatabase

# an index made before there was a log gets it with its first entry
SCHEMA = (
    """CREATE TABLE IF NOT EXISTS log (number INTEGER PRIMARY KEY AUTOINCREMENT, time REAL NOT NULL, who TEXT NOT NULL,
       action TEXT NOT NULL, subject TEXT NOT NULL, detail TEXT NOT NULL)""",
    "CREATE INDEX IF NOT EXISTS log_action ON log (action)",
    *(
        f"""CREATE TRIGGER IF NOT EXISTS log_no_{change} BEFORE {change.upper()} ON log
            BEGIN SELECT RAISE(ABORT, 'the log of an index is only added to'); END"""
        for change in ("update", "delete")
    ),
)


class SqliteLog:
    """See `ActionLog`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self.database = database

    def append(self, *entries: LogEntry) -> None:
        now = time.time()
        rows = [(now, entry.who, entry.action, entry.subject, entry.detail) for entry in entries]
        with self.database.writing(counted=False) as connection:
            for statement in SCHEMA:
                connection.execute(statement)
            connection.executemany("INSERT INTO log (time, who, action, subject, detail) VALUES (?, ?, ?, ?, ?)", rows)

    def entries(
        self, actions: Sequence[str] = (), subject: str | None = None, last: int | None = None
    ) -> list[LogEntry]:
        chosen = f"action IN ({', '.join('?' * len(actions))})" if actions else "1"
        statement = f"""SELECT who, action, subject, detail, time, number FROM log
                        WHERE {chosen} AND (? IS NULL OR subject = ?) ORDER BY number DESC LIMIT ?"""
        with self.database.reading() as connection:
            if not _there(connection):
                return []
            rows = connection.execute(statement, (*actions, subject, subject, -1 if last is None else last))
            cells = [typed(row, TEXT, TEXT, TEXT, TEXT, NUMBER, WHOLE) for row in rows]
        return [LogEntry(*row) for row in reversed(cells)]


def _there(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'log'").fetchone())
