"""An index in one SQLite file: the only truth about items, vectors, models and calibration.

Every change is one transaction, on the disk before it is acknowledged; readers never wait for a writer. An item keeps
its key for life and a changed item gets a new one, so the segments only ask for the keys beyond their last one and for
those removed since.
"""

import re
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from lookalike.errors import UserError, check, unknown
from lookalike.files import PARTIAL
from lookalike.search.filters import Filter, Kind
from lookalike.search.items import Answer, Identity, Item, Nearest, Value, Vectors
from lookalike.search.stores import Forgotten, GenerationError, Summary
from lookalike.search.stores.fields import check_batch, checked, checked_k
from lookalike.search.stores.sqlite import forgetting, listing, rows, schema, snapshot, soundness, upkeep
from lookalike.search.stores.sqlite.cache import Cache
from lookalike.search.stores.sqlite.database import WAIT, SqliteDatabase
from lookalike.search.stores.sqlite.documents import SqliteDocuments
from lookalike.search.stores.sqlite.filling import SqliteGenerations
from lookalike.search.stores.sqlite.generations import identity_of
from lookalike.search.stores.sqlite.log import SqliteLog
from lookalike.search.stores.sqlite.marks import SqliteMarks
from lookalike.search.stores.sqlite.schema import FORMAT
from lookalike.search.stores.sqlite.segments import SegmentView

FILE = "index.sqlite"
OWN = re.compile(rf"{re.escape(FILE)}|cache$|model$|\.")  # what the names in a folder begin with
BEGUN = re.compile(rf"\.{re.escape(FILE)}\..*{PARTIAL}")  # what one that was stopped while it made an index has left
BLOCK = 10_000  # rows of one step of a scan
OFFSET = 4  # bytes of one photo that a scan reads beside its numbers


class SqliteStore:
    """A folder with `index.sqlite`; see `Store`. `patience`: seconds for other processes that hold it."""

    def __init__(self, folder: Path, patience: float = WAIT) -> None:
        self.folder = folder
        file = folder / FILE
        check(
            file.is_file(), f"there is no index in '{folder}': make one with lookalike index MODEL DATA --out {folder}"
        )
        self.database, self.cache = SqliteDatabase(file, patience), Cache(folder / "cache")
        self.documents = SqliteDocuments(self.database)
        self.marks = SqliteMarks(self.database)
        self.log = SqliteLog(self.database)
        self.generations = SqliteGenerations(self.database)
        self._view: SegmentView | None = None
        self._refreshing = threading.Lock()
        version = self.documents.read("format")
        check(version == FORMAT, f"'{file}' has format {version}, this version reads {FORMAT}: update lookalike")

    @staticmethod
    def create(folder: Path, identity: Identity) -> "SqliteStore":
        """A new, empty index in a folder that is new or empty."""
        empty = not folder.exists() or (folder.is_dir() and all(BEGUN.match(file.name) for file in folder.iterdir()))
        check(empty, f"'{folder}' exists and is not an index: give a new folder")
        _make(folder)
        schema.create(folder / FILE, identity)
        return SqliteStore(folder)

    @staticmethod
    def restore(folder: Path, backup: Path) -> Path:
        """Put a `backup` in the place of what is in a folder; returns where that is kept from now on."""
        ours = not folder.exists() or (folder.is_dir() and all(OWN.match(file.name) for file in folder.iterdir()))
        check(ours, f"'{folder}' exists and is not an index: give a new folder")
        _make(folder)
        return upkeep.restore(folder / FILE, backup)

    def steady(self) -> AbstractContextManager[object]:
        return self.database.reading()

    def close(self) -> None:
        self.database.close()

    @property
    def identity(self) -> Identity:
        return self.database.read(lambda connection: identity_of(connection))

    def put(
        self,
        items: Sequence[Item],
        vectors: Vectors,
        pictures: Mapping[str, bytes] | None = None,
        generation: int | None = None,
    ) -> None:
        check_batch(items)
        with self.database.writing() as connection:
            if generation not in (None, identity_of(connection).generation):
                raise GenerationError
            rows.put(connection, items, vectors, pictures or {})

    def remove(self, ids: Sequence[str]) -> int:
        with self.database.writing() as connection:
            keys = rows.keys_of(connection, ids, complete=False)
            rows.remove(connection, list(keys.values()))
            return len(keys)

    def forget(self, ids: Sequence[str]) -> Forgotten:
        result = forgetting.forget(self.database, self.cache, ids)
        with self.database.reading() as connection:
            self._refreshed(connection)
        return result

    def search(self, queries: Vectors, k: int, where: Filter = (), leave_out: Sequence[str] = ()) -> list[Answer]:
        with self.database.reading() as connection:
            search, queries = self._searched(connection, queries, k, where, leave_out)
            return search.answers(queries)

    def nearest(
        self, queries: Vectors, k: int, column: str, where: Filter = (), leave_out: Sequence[str] = ()
    ) -> list[Nearest]:
        with self.database.reading() as connection:
            search, queries = self._searched(connection, queries, k, where, leave_out)
            names = rows.names_of(connection)
            if column not in names:
                raise unknown("column", column, names)
            return search.named(queries, names[column])

    def _searched(
        self, connection: sqlite3.Connection, queries: Vectors, k: int, where: Filter, leave_out: Sequence[str]
    ) -> tuple[snapshot.SegmentSearch, Vectors]:
        """A search within the snapshot of a connection, and its queries."""
        k, view = checked_k(k), self._refreshed(connection)
        queries = checked(queries, len(queries), identity_of(connection).dim)
        left_out = list(rows.keys_of(connection, leave_out).values())
        return snapshot.SegmentSearch(connection, view, k, snapshot.allowed(connection, where), left_out), queries

    def _refreshed(self, connection: sqlite3.Connection) -> SegmentView:
        """The segments as of a snapshot that begins here, so that no other thread is ahead of it."""
        with self._refreshing:
            self._view = snapshot.refreshed(connection, self._view, self.cache)
            return self._view

    def vectors(self, ids: Sequence[str]) -> Vectors:
        return self.database.read(listing.vectors_of, ids)

    def items(self, ids: Sequence[str]) -> list[Item]:
        return self.database.read(listing.items, ids)

    def scan(self, after: str | None = None, where: Filter = ()) -> Iterator[tuple[list[Item], Vectors]]:
        last, generation = after or "", self.identity.generation
        while (block := self.database.read(listing.scanned, generation, where, last, BLOCK))[0]:
            yield block
            last = block[0][-1].id

    def at_paths(self, paths: Sequence[str]) -> dict[str, Item]:
        return self.database.read(listing.at_paths, paths)

    def sample(self, count: int) -> list[Item]:
        return self.database.read(listing.sample, count)

    def listed(self, where: Filter = (), after: str = "") -> Iterator[Item]:
        while block := self.database.read(listing.listed, where, after, BLOCK):
            yield from block
            after = block[-1].id

    def count(self, where: Filter = ()) -> int:
        return self.database.read(listing.count, where)

    def columns(self) -> Mapping[str, Kind]:
        return self.database.read(listing.columns)

    def know(self, kinds: Mapping[str, Kind]) -> None:
        self.database.write(rows.make_columns, kinds)

    def version(self) -> str:
        with self.database.reading() as connection:
            return str(connection.execute("SELECT token FROM changes ORDER BY number DESC LIMIT 1").fetchone()[0])

    def first_of(self, column: str, values: Sequence[Value]) -> dict[Value, Item]:
        return self.database.read(listing.first_of, column, values)

    def summary(self, columns: Sequence[str], values: int = 0, newest: int = 0) -> Summary:
        return self.database.read(listing.summary, columns, values, newest)

    def describe(self) -> dict[str, str]:
        parts, count = _sizes(self.folder), self.count()
        whole = {"on disk": ", ".join(f"{name} {size / 1e6:,.1f} MB" for name, size in parts.items() if size)}
        if not count:
            return whole
        models = self.database.read(listing.bytes_of_models)
        truth, cache = ((parts[name] - less) / count for name, less in ((FILE, models), ("cache", 0)))
        read = self.identity.dim + OFFSET
        each = f"{truth:,.0f} bytes in {FILE}, {cache:,.0f} in the cache, of which a search reads {read:,}"
        return whole | {"per photo": each}

    def check(self) -> list[str]:
        """What is wrong with the truth, one line each."""
        return self.database.read(lambda connection: list(soundness.problems(connection)))

    def compact(self) -> None:
        """Give back the space of what was removed, and merge all segments into one."""
        upkeep.compact(self.database)
        with self.database.reading() as connection:
            self._refreshed(connection)

    def backup(self, file: Path) -> None:
        """A copy of the truth as of now, in one file, while others read and write."""
        upkeep.backup(self.database, file)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder '{folder}' ({error.strerror}): choose another place") from None


def _sizes(folder: Path) -> dict[str, int]:
    """How many bytes each part of an index takes; the log of the truth counts with it."""
    parts = {FILE: 0, "cache": 0, "model": 0}
    for file in folder.rglob("*"):
        if file.is_file():
            name = file.relative_to(folder).parts[0]
            name = FILE if name.startswith(FILE) else name
            parts[name] = parts.get(name, 0) + file.stat().st_size
    return parts
