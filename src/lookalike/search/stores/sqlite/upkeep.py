"""The care of an index in SQLite: the space of what was removed, backups."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from lookalike import files
from lookalike.errors import UserError, check
from lookalike.search.stores.sqlite.database import WAIT, SqliteDatabase, explained, opened
from lookalike.search.stores.sqlite.documents import read_fact
from lookalike.search.stores.sqlite.schema import FORMAT
from lookalike.search.stores.sqlite.soundness import problems

PARTS = ("", "-wal", "-shm")  # of a database: the file, its log, and the index of the log


def compact(database: SqliteDatabase) -> None:
    """Give back the space of what was removed."""
    with database.writing() as connection:
        connection.execute("DELETE FROM removals")
        connection.execute("DELETE FROM changes")
    with explained(database.file):
        database.connection().execute("VACUUM")


def backup(database: SqliteDatabase, file: Path) -> None:
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


def restore(file: Path, backup: Path) -> Path:
    """Put a backup in the place of `file`; what was there keeps existing under the name that is returned.

    Processes that have the index open see that its file is another one, and go on with that.
    """
    check(backup.is_file(), f"there is no file '{backup}': give one that lookalike status --backup has written")
    partial, before = file.with_name(f".{file.name}{files.PARTIAL}"), file.with_name(f"{file.name}.before")
    try:
        _copy_sound(backup, partial)
        files.sync(partial)
        with explained(file), _without_writers(file):
            for part in PARTS:
                Path(f"{before}{part}").unlink(missing_ok=True)
            for part in PARTS:
                if Path(f"{file}{part}").exists():
                    Path(f"{file}{part}").rename(f"{before}{part}")
            partial.rename(file)
        files.sync_folder(file.parent)
    except OSError as error:
        raise files.cannot_write(file, error) from error
    finally:
        partial.unlink(missing_ok=True)
    return before


def _copy_sound(backup: Path, partial: Path) -> None:
    """A backup as one file, if it is a whole index."""
    partial.unlink(missing_ok=True)
    try:
        with closing(opened(backup.absolute()).connection) as source, closing(sqlite3.connect(partial)) as copy:
            source.backup(copy)
            version, problem = read_fact(copy, "format"), next(problems(copy), None)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, until it has its name
    except sqlite3.DatabaseError as error:
        raise UserError(f"'{backup}' is damaged, or no backup of an index ({error}): nothing was restored") from error
    check(problem is None, f"'{backup}' is damaged ({problem}): nothing was restored")
    check(version == FORMAT, f"'{backup}' has format {version}, this version reads {FORMAT}: update lookalike")


@contextmanager
def _without_writers(file: Path) -> Iterator[None]:
    """Writers wait until the block has ended, and see then that the file is another; a damaged one has none."""
    if not file.is_file():
        yield
        return
    with closing(sqlite3.connect(file, timeout=WAIT, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            pass
        yield
