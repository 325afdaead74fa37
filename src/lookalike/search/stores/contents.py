"""What an index in SQLite keeps beside its items: pictures, small documents, the files of models."""

import sqlite3
from collections.abc import Mapping, Sequence

from lookalike.search.stores.rows import keys_of


def picture(connection: sqlite3.Connection, id_: str) -> bytes | None:
    keys_of(connection, [id_])
    return pictures(connection, [id_]).get(id_)


def pictures(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, bytes]:
    keys = keys_of(connection, ids, complete=False)
    statement = "SELECT content FROM pictures WHERE key = ?"
    contents = {one: connection.execute(statement, (key,)).fetchone() for one, key in keys.items()}
    return {one: bytes(row[0]) for one, row in contents.items() if row is not None}


def read_fact(connection: sqlite3.Connection, name: str) -> str | None:
    row = connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
    return None if row is None else str(row[0])


def write_fact(connection: sqlite3.Connection, name: str, text: str | None) -> None:
    connection.execute("DELETE FROM facts WHERE name = ?", (name,))
    if text is not None:
        connection.execute("INSERT INTO facts VALUES (?, ?)", (name, text))


def model_files(connection: sqlite3.Connection, fingerprint: str) -> dict[str, bytes]:
    return dict(connection.execute("SELECT name, content FROM models WHERE fingerprint = ?", (fingerprint,)))


def keep_model(connection: sqlite3.Connection, fingerprint: str, files: Mapping[str, bytes]) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO models VALUES (?, ?, ?)", [(fingerprint, *file) for file in files.items()]
    )
