"""One SQLite file for many threads: a connection each, snapshots to read in, whole and durable changes."""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from lookalike.errors import UserError

WAIT = 60.0  # seconds for another writer
SETTINGS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "foreign_keys = ON",
    "temp_store = MEMORY",
    "cache_size = -16384",  # kilobytes, for each thread; behind it is that of the system
)
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class Database:
    """Connections to one file, one per thread."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._own = threading.local()
        self._all: list[sqlite3.Connection] = []

    def connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = connect(self.file)
            self._own.connection = connection
            self._all.append(connection)
        return connection

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One snapshot, whatever is written meanwhile."""
        with explained(self.file):
            connection = self.connection()
            if connection.in_transaction:
                yield connection
                return
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One change: whole and durable when the block has ended, not there if it failed."""
        with explained(self.file):
            connection = self.connection()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute(
                    "INSERT INTO changes (token, time) VALUES (?, ?)", (os.urandom(8).hex(), time.time())
                )
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def read(
        self, work: Callable[Concatenate[sqlite3.Connection, Parameters], Result], *args: Parameters.args,
        **settings: Parameters.kwargs,
    ) -> Result:  # fmt: skip
        """Work on one snapshot."""
        with self.reading() as connection:
            return work(connection, *args, **settings)

    def write(
        self, work: Callable[Concatenate[sqlite3.Connection, Parameters], Result], *args: Parameters.args,
        **settings: Parameters.kwargs,
    ) -> Result:  # fmt: skip
        """One change."""
        with self.writing() as connection:
            return work(connection, *args, **settings)

    def close(self) -> None:
        for connection in self._all:
            connection.close()
        self._all.clear()
        self._own = threading.local()


def connect(file: Path) -> sqlite3.Connection:
    """A connection without hidden transactions; where the folder cannot be written, one that only reads."""
    writable = os.access(file if file.exists() else file.parent, os.W_OK) and os.access(file.parent, os.W_OK)
    if writable:
        connection = sqlite3.connect(file, timeout=WAIT, isolation_level=None, check_same_thread=False)
        for setting in SETTINGS:
            connection.execute(f"PRAGMA {setting}")
        return connection
    # SQLite cannot share a write-ahead log in a folder that it cannot write to: nobody else can either
    address = f"{file.resolve().as_uri()}?mode=ro&immutable=1"
    return sqlite3.connect(address, uri=True, timeout=WAIT, isolation_level=None, check_same_thread=False)


@contextmanager
def explained(file: Path) -> Iterator[None]:
    """What SQLite complains about, as one line that says what to do."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise UserError(f"{error.object!r} is not text: no index holds such a name or value") from None
    except sqlite3.DatabaseError as error:
        text = str(error).lower()
        for sign, meaning in (
            ("locked", "another process is writing to it: try again when that is done"),
            ("busy", "another process is writing to it: try again when that is done"),
            ("full", "the disk is full: free some space and repeat the command, nothing is lost"),
            ("readonly", "it cannot be written: check the rights of the folder"),
            ("unable to open", "it cannot be opened: check the rights of the folder"),
            ("malformed", "the file is damaged: restore it from a backup (lookalike status --backup makes one)"),
            ("not a database", "the file is damaged: restore it from a backup (lookalike status --backup makes one)"),
            ("no such table", "the file is not an index: restore it from a backup, or make a new index"),
            ("disk i/o", "the disk reports an error: check it, then repeat the command"),
        ):
            if sign in text:
                raise UserError(f"'{file}': {meaning} ({error})") from error
        raise


def sizes(folder: Path, truth: str) -> str:
    """How much room an index takes, in words; the log of the truth counts with it."""
    parts = {truth: 0, "cache": 0, "model": 0, "thumbnails": 0}
    for file in folder.rglob("*"):
        if file.is_file():
            name = file.relative_to(folder).parts[0]
            name = truth if name.startswith(truth) else name
            parts[name] = parts.get(name, 0) + file.stat().st_size
    return ", ".join(f"{name} {size / 1e6:,.1f} MB" for name, size in parts.items() if size)
