"""What an index in SQLite keeps beside its items: pictures, small documents, the files of models."""

import sqlite3
from collections.abc import Mapping, Sequence

from lookalike.search.stores.sqlite.cells import BYTES, TEXT, typed
from lookalike.search.stores.sqlite.database import SqliteDatabase
from lookalike.search.stores.sqlite.rows import keys_of


class SqliteDocuments:
    """See `Documents`."""

    def __init__(self, database: SqliteDatabase) -> None:
        self.database = database

    def read(self, name: str) -> str | None:
        with self.database.reading() as connection:
            return read_fact(connection, name)

    def write(self, name: str, text: str | None) -> None:
        with self.database.writing() as connection:
            connection.execute("DELETE FROM facts WHERE name = ?", (name,))
            if text is not None:
                connection.execute("INSERT INTO facts VALUES (?, ?)", (name, text))

    def model(self, fingerprint: str) -> dict[str, bytes]:
        with self.database.reading() as connection:
            rows = connection.execute("SELECT name, content FROM models WHERE fingerprint = ?", (fingerprint,))
            return {row[0]: row[1] for row in rows if typed(row, TEXT, BYTES)}

    def keep_model(self, fingerprint: str, files: Mapping[str, bytes]) -> None:
        with self.database.writing() as connection:
            rows = [(fingerprint, *file) for file in files.items()]
            connection.executemany("INSERT OR REPLACE INTO models VALUES (?, ?, ?)", rows)

    def pictures(self, ids: Sequence[str]) -> dict[str, bytes]:
        with self.database.reading() as connection:
            keys = keys_of(connection, ids, complete=False)
            statement = "SELECT content FROM pictures WHERE key = ?"
            contents = {one: connection.execute(statement, (key,)).fetchone() for one, key in keys.items()}
            return {one: typed(row, BYTES)[0] for one, row in contents.items() if row is not None}


def read_fact(connection: sqlite3.Connection, name: str) -> str | None:
    row = connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
    return None if row is None else str(typed(row, TEXT)[0])
