"""One SQLite file for many threads: a connection each, snapshots to read in, whole and durable changes.

A connection goes on with the file that it opened, wherever that is by now. So before each use the file is compared with
the one that has its name: nothing is read from, or acknowledged into, a folder that was moved or deleted.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar
from weakref import WeakSet

from lookalike.errors import UserError, check
from lookalike.files import printable
from lookalike.search.stores import GenerationError, StorageError
from lookalike.search.stores.sqlite.generations import identity_of
from lookalike.search.stores.sqlite.soundness import check_journal, check_schema, problems

WAIT = 60.0  # seconds for another writer
ATTEMPTS = 3  # to lock a file that others replace meanwhile
SETTINGS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    "foreign_keys = ON",
    "trusted_schema = OFF",  # the file may come from anywhere
    "temp_store = MEMORY",
    "cache_size = -16384",  # kilobytes, for each thread; behind it is that of the system
)
READING = SETTINGS[3:]  # what changes no file
MEANINGS = (  # of what SQLite says
    ("locked", "another process is writing to it: try again when that is done"),
    ("busy", "another process is writing to it: try again when that is done"),
    ("full", "the disk is full: free some space and repeat the command, nothing is lost"),
    ("readonly", "it cannot be written: check the rights of the folder"),
    ("unable to open", "it cannot be opened: check the rights of the folder"),
    ("disk i/o", "the disk reports an error: check it, then repeat the command"),
)
DAMAGED = ("malformed", "not a database", "no such table")
LOG = "let its owner run lookalike status --compact on it, or copy the index with --backup"
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Opened:
    """A connection, what its file was when it was opened, and whose it is."""

    connection: sqlite3.Connection
    fixed: bool  # SQLite takes the file for one that nobody changes
    state: tuple[int, ...]
    thread: threading.Thread = field(default_factory=threading.current_thread)

    def check_same(self, new: "Opened", file: Path) -> None:
        """Refuse a file that holds vectors of another model under the same number of a generation."""
        try:
            one, other = identity_of(self.connection), identity_of(new.connection)
            same = one == other or one.generation != other.generation
        except sqlite3.DatabaseError:
            same = False
        if not same:
            new.connection.close()
            raise StorageError(f"'{file}': another index has taken its place: open it again")


class SqliteDatabase:
    """Connections to one file, one per thread; others who hold it are waited for as long as there is `patience`."""

    def __init__(self, file: Path, patience: float = WAIT) -> None:
        self.file, self.patience = file.absolute(), patience
        self._own = threading.local()
        self._all: list[Opened] = []
        self._lock = threading.Lock()
        _databases.add(self)

    def connection(self) -> sqlite3.Connection:
        """This thread's connection to the file that has the name now."""
        return self._opened().connection

    def _opened(self) -> Opened:
        old: Opened | None = getattr(self._own, "opened", None)
        if old is not None and (old.connection.in_transaction or self._current(old)):
            return old
        self._check_not_inherited()
        new = opened(self.file, self.patience)
        if old is not None:
            old.check_same(new, self.file)
        self._close(lambda one: one is old or not one.thread.is_alive())
        self._own.opened = new
        with self._lock:
            self._all.append(new)
        return new

    def _close(self, which: Callable[[Opened], bool]) -> None:
        with self._lock:
            some = [one for one in self._all if which(one)]
            self._all = [one for one in self._all if one not in some]
        for one in some:
            one.connection.close()

    def _check_not_inherited(self) -> None:
        """SQLite keeps one account of its locks on a file: a forked process would rely on locks that it has not."""
        state = state_of(self.file)
        if any(one.state[:2] == state for one in _inherited):
            raise StorageError(
                f"'{self.file}': threads of the process that this one was forked from have it open: start processes "
                "by spawn, or before those threads"
            )

    def before_fork(self) -> None:
        """Close what no other thread uses: each process opens its own."""
        own: Opened | None = getattr(self._own, "opened", None)
        if own is None or not own.connection.in_transaction:
            self._own.opened = None
            self._close(lambda one: one is own or not one.thread.is_alive())

    def after_fork(self) -> None:
        """Touch nothing that is the other process's."""
        _inherited.extend(self._all)
        self._all, self._own, self._lock = [], threading.local(), threading.Lock()

    def _current(self, one: Opened) -> bool:
        return one.state == state_of(self.file, one.fixed)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One snapshot, whatever is written meanwhile."""
        with explained(self.file):
            opened = self._opened()
            connection = opened.connection
            if connection.in_transaction:
                yield connection
                return
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")
            if opened.fixed and not self._current(opened):
                raise StorageError(f"'{self.file}' was changed while it was read: repeat the command")

    @contextmanager
    def writing(self, counted: bool = True) -> Iterator[sqlite3.Connection]:
        """One change: whole and durable when the block has ended, not there if it failed.

        Searches look at what has changed, unless it is not `counted`.
        """
        with explained(self.file):
            opened = self._locked()
            connection = opened.connection
            try:
                yield connection
                if counted:
                    change = (os.urandom(8).hex(), time.time())
                    connection.execute("INSERT INTO changes (token, time) VALUES (?, ?)", change)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            if not self._current(opened):
                raise gone(self.file)

    def _locked(self) -> Opened:
        """A connection that holds the lock of writers: of the file that has the name, also where it had to wait."""
        for _ in range(ATTEMPTS):
            opened = self._opened()
            opened.connection.execute("BEGIN IMMEDIATE")
            if self._current(opened):
                return opened
            opened.connection.execute("ROLLBACK")
        raise gone(self.file)

    def read(
        self,
        work: Callable[Concatenate[sqlite3.Connection, Parameters], Result],
        *args: Parameters.args,
        **settings: Parameters.kwargs,
    ) -> Result:
        """Work on one snapshot."""
        with self.reading() as connection:
            return work(connection, *args, **settings)

    def write(
        self,
        work: Callable[Concatenate[sqlite3.Connection, Parameters], Result],
        *args: Parameters.args,
        **settings: Parameters.kwargs,
    ) -> Result:
        """One change."""
        with self.writing() as connection:
            return work(connection, *args, **settings)

    def close(self) -> None:
        self._close(lambda _: True)
        self._own = threading.local()


_databases: "WeakSet[SqliteDatabase]" = WeakSet()
_inherited: list[Opened] = []  # by a fork, never used and never closed


def _for_each(work: Callable[[SqliteDatabase], None]) -> None:
    for database in list(_databases):
        work(database)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=partial(_for_each, SqliteDatabase.before_fork),
        after_in_child=partial(_for_each, SqliteDatabase.after_fork),
    )


def opened(file: Path, patience: float = WAIT) -> Opened:
    """A connection to a file that is there; where it cannot be written, one that only reads."""
    state = state_of(file)
    writable = os.access(file, os.W_OK) and os.access(file.resolve().parent, os.W_OK)
    if writable:
        return Opened(connect(file, "mode=rw", SETTINGS, patience), False, state)
    # a log is read by an index of it beside it, which only writers can make: without writers there is no log
    try:
        return Opened(connect(file, "mode=ro", READING, patience), False, state)
    except sqlite3.OperationalError as error:
        check(not _log(file), f"'{file}-wal' holds changes that cannot be read here ({error}): {LOG}")
    state = state_of(file, fixed=True)
    return Opened(connect(file, "mode=ro&immutable=1", READING, patience), True, state)


def connect(file: Path, how: str, settings: Sequence[str], patience: float = WAIT) -> sqlite3.Connection:
    """A connection without hidden transactions."""
    check_journal(file)
    address = f"{file.resolve().as_uri()}?{how}"
    connection = sqlite3.connect(address, uri=True, timeout=patience, isolation_level=None, check_same_thread=False)
    try:
        for setting in settings:
            connection.execute(f"PRAGMA {setting}")
        check_schema(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def state_of(file: Path, fixed: bool = False) -> tuple[int, ...]:
    """Which file has the name; with `fixed` also what tells that it was written to."""
    try:
        status = os.stat(file)
    except OSError:
        raise gone(file) from None
    which = (status.st_dev, status.st_ino)
    return (*which, status.st_size, status.st_mtime_ns, _log(file)) if fixed else which


def _log(file: Path) -> int:
    """The size of the log, in which changes wait until they go into the file; it is where that is, behind a link."""
    try:
        return os.stat(f"{file.resolve()}-wal").st_size
    except FileNotFoundError:
        return 0


def gone(file: Path) -> StorageError:
    return StorageError(f"'{file}' no longer exists: the index was moved or deleted while it was open")


@contextmanager
def explained(file: Path) -> Iterator[None]:
    """What SQLite complains about, and what fails because the file is damaged, as one line that says what to do."""
    try:
        yield
    except (UserError, GenerationError):
        raise
    except UnicodeEncodeError as error:
        raise UserError(f"{error.object!r} is not text: no index holds such a name or value") from None
    except Exception as error:
        said = printable(str(error))  # it may quote the file
        text = said.lower() if isinstance(error, sqlite3.Error) else ""
        meaning = next((meaning for sign, meaning in MEANINGS if sign in text), None)
        if meaning is not None:
            raise StorageError(f"'{file}': {meaning} ({said})") from error
        problem = text if any(sign in text for sign in DAMAGED) else _problem(file)
        if problem is None:
            raise
        restore = f"restore it from a backup (lookalike status {file.parent} --restore FILE)"
        raise StorageError(f"'{file}': it is not an index, or damaged: {restore} ({problem})") from error


def _problem(file: Path) -> str | None:
    """The first thing that is wrong with a file, or why that cannot be told."""
    try:
        with closing(connect(file, "mode=ro", READING)) as connection:
            return next(problems(connection), None)
    except Exception as error:  # what is damaged fails in whatever way its reader does
        return " ".join(str(error).split())[:200] or type(error).__name__
