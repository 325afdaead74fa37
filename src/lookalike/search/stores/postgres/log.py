"""Who did what, in a table of PostgreSQL that is only added to."""

import time
from collections.abc import Sequence

from lookalike.search.log import LogEntry
from lookalike.search.stores.postgres.database import PostgresDatabase, Snapshot


class PostgresLog:
    """See `ActionLog`."""

    def __init__(self, database: PostgresDatabase) -> None:
        self.database = database

    def append(self, *entries: LogEntry) -> None:
        self.database.write(_append, entries, time.time())

    def entries(
        self, actions: Sequence[str] = (), subject: str | None = None, last: int | None = None
    ) -> list[LogEntry]:
        return self.database.read(_entries, list(actions), subject, last)


def _append(snapshot: Snapshot, entries: Sequence[LogEntry], now: float) -> None:
    rows = [(now, entry.who, entry.action, entry.subject, entry.detail) for entry in entries]
    statement = "INSERT INTO log (time, who, action, subject, detail) VALUES (%s, %s, %s, %s, %s)"
    snapshot.connection.cursor().executemany(statement, rows)


def _entries(snapshot: Snapshot, actions: list[str], subject: str | None, last: int | None) -> list[LogEntry]:
    statement = """SELECT who, action, subject, detail, time, number FROM log
                   WHERE (%(actions)s::text[] = '{}' OR action = ANY(%(actions)s))
                   AND (%(subject)s::text IS NULL OR subject = %(subject)s) ORDER BY number DESC LIMIT %(last)s"""
    rows = snapshot.connection.execute(statement, {"actions": actions, "subject": subject, "last": last}).fetchall()
    return [LogEntry(*row) for row in reversed(rows)]
