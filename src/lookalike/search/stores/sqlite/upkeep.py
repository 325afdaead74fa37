"""The care of an index in SQLite: the space of what was removed, backups."""

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from lookalike import files
from lookalike.errors import UserError, check
from lookalike.search.stores.sqlite.database import SqliteDatabase, connect, explained, opened
from lookalike.search.stores.sqlite.documents import read_fact
from lookalike.search.stores.sqlite.schema import FORMAT
from lookalike.search.stores.sqlite.soundness import problems

PARTS = ("", "-wal", "-shm", "-journal")  # of a database: the file, its log and what SQLite keeps beside it


def compact(database: SqliteDatabase) -> None:
    """Give back the space of what was removed."""
    with database.writing() as connection:
        connection.execute("DELETE FROM removals")
        connection.execute("DELETE FROM changes")
    with explained(database.file):
        database.connection().execute("VACUUM")


def backup(database: SqliteDatabase, file: Path) -> None:
    """A copy of the truth as of now, in one file, while others read and write; whoever may read that may read this."""
    source = database.connection()
    with _replacing(file) as partial:
        with explained(file), closing(sqlite3.connect(partial)) as copy:
            source.backup(copy)
        _give_rights(partial, database.file)
        files.sync(partial)
        partial.replace(file)


def restore(file: Path, backup: Path) -> Path:
    """Put a backup in the place of `file`; what was there is kept under the name that is returned.

    Processes that have the index open see that its file is another one, and go on with that.
    """
    check(backup.is_file(), f"there is no file '{backup}': give one that lookalike status --backup has written")
    before = file.with_name(f"{file.name}.before")
    with _replacing(file) as partial:
        with explained(file):
            _copy_sound(backup, partial)
        there = os.path.lexists(file)
        _give_rights(partial, file if there else backup)
        files.sync(partial)
        with explained(file), _without_writers(file):
            for part in PARTS if there else ():  # else one that was stopped has moved it away, maybe without its log
                Path(f"{before}{part}").unlink(missing_ok=True)
            for part in PARTS:
                with suppress(FileNotFoundError):  # whoever closes the index last deletes its log
                    Path(f"{file}{part}").rename(f"{before}{part}")
            partial.rename(file)
    return before


@contextmanager
def _replacing(file: Path) -> Iterator[Path]:
    """A file beside another, which only its owner may read, to take its place; one at a time in a folder."""
    partial = files.beside(file)
    try:
        with files.lock_folder(file.parent):
            partial.touch(0o600, exist_ok=False)
            yield partial
            files.sync_folder(file.parent)
    except OSError as error:
        raise files.cannot_write(file, error) from error
    finally:
        partial.unlink(missing_ok=True)


def _give_rights(file: Path, like: Path) -> None:
    """The owner and the rights of another file."""
    status = like.stat()
    with suppress(AttributeError, OSError):  # only root gives files away
        os.chown(file, status.st_uid, status.st_gid)
    file.chmod(stat.S_IMODE(status.st_mode))


def _copy_sound(backup: Path, partial: Path) -> None:
    """A backup as one file, if it is a whole index."""
    try:
        with closing(opened(backup.absolute()).connection) as source, closing(sqlite3.connect(partial)) as copy:
            source.backup(copy)
            version, problem = read_fact(copy, "format"), next(problems(copy), None)
            copy.execute("PRAGMA journal_mode = WAL")  # nobody has to wait for others to change that later
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", None)  # what we raise ourselves has none
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY):  # which is no fault of the backup
            raise
        raise UserError(f"'{backup}' is damaged, or no backup of an index ({error}): nothing was restored") from error
    check(problem is None, f"'{backup}' is damaged ({problem}): nothing was restored")
    check(version == FORMAT, f"'{backup}' has format {version}, this version reads {FORMAT}: update lookalike")


@contextmanager
def _without_writers(file: Path) -> Iterator[None]:
    """Writers wait until the block has ended, and see then that the file is another; a damaged one has none."""
    with ExitStack() as stack:
        try:
            if file.is_file():
                stack.enter_context(closing(connect(file, "mode=rw", ()))).execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            pass
        yield
