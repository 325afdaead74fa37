"""The care of an index in SQLite: whether it is sound, the space of what was removed, backups."""

import sqlite3
from contextlib import closing
from pathlib import Path

from lookalike import files
from lookalike.search.stores.database import Database, explained
from lookalike.search.stores.generations import identity_of


def troubles(connection: sqlite3.Connection) -> list[str]:
    """What is wrong with the truth, one line each."""
    lines = [row[0] for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
    table = f"vectors_{identity_of(connection).generation}"
    for what, statement in (
        ("no vector", f"SELECT count(*) FROM items WHERE key NOT IN (SELECT key FROM {table})"),
        ("a vector but no entry", f"SELECT count(*) FROM {table} WHERE key NOT IN (SELECT key FROM items)"),
    ):
        count = connection.execute(statement).fetchone()[0]
        lines += [f"{count} item{'s have' if count > 1 else ' has'} {what}"] if count else []
    return lines


def compact(database: Database) -> None:
    """Give back the space of what was removed."""
    with database.writing() as connection:
        connection.execute("DELETE FROM removals")
        connection.execute("DELETE FROM changes")
    with explained(database.file):
        database.connection().execute("VACUUM")


def backup(database: Database, file: Path) -> None:
    """A copy of the truth as of now, in one file, while others read and write."""
    partial = file.with_name(f".{file.name}{files.PARTIAL}")
    try:
        with explained(file), closing(sqlite3.connect(partial)) as copy:
            database.connection().backup(copy)
        files.sync(partial)
        partial.replace(file)
        files.sync_folder(file.parent)
    except OSError as error:
        raise files.cannot_write(file, error) from error
    finally:
        partial.unlink(missing_ok=True)
