"""An index in one SQLite file: the only truth about items, vectors, models and calibration.

Every change is one transaction, on the disk before it is acknowledged; readers never wait for a writer. An item keeps
its key for life and a changed item gets a new one, so the segments only ask for the keys beyond their last one and for
those removed since.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np

from lookalike import files
from lookalike.errors import UserError, check, unknown
from lookalike.search.filters import Filter, Kind, as_sql
from lookalike.search.items import Answer, Identity, Item, Mark, Value, Vectors
from lookalike.search.stores import GenerationError, generations, marks, rows, snapshot
from lookalike.search.stores.cache import Cache
from lookalike.search.stores.database import Database, connect, explained, sizes
from lookalike.search.stores.fields import check_batch, checked
from lookalike.search.stores.generations import identity_of, insert_vectors
from lookalike.search.stores.segments import View

FILE, FORMAT = "index.sqlite", "1"
BLOCK = 10_000  # rows of one step of a scan
SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE generations (number INTEGER PRIMARY KEY, fingerprint TEXT, geometry TEXT NOT NULL, dim INTEGER NOT NULL,
                          current INTEGER NOT NULL);
CREATE TABLE models (fingerprint TEXT, name TEXT, content BLOB NOT NULL, PRIMARY KEY (fingerprint, name));
CREATE TABLE columns (position INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, kind TEXT NOT NULL);
CREATE TABLE items (key INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, path, label TEXT, root TEXT,
                    size INTEGER, modified INTEGER, digest TEXT, added REAL NOT NULL);
CREATE INDEX items_path ON items (path);
CREATE INDEX items_label ON items (label);
CREATE TABLE changes (number INTEGER PRIMARY KEY AUTOINCREMENT, token TEXT NOT NULL, time REAL NOT NULL);
CREATE TABLE removals (key INTEGER PRIMARY KEY, change INTEGER NOT NULL);
CREATE INDEX removals_change ON removals (change);
CREATE TABLE pictures (key INTEGER PRIMARY KEY, content BLOB NOT NULL);
"""


class SqliteStore:
    """A folder with `index.sqlite`; see `Store`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        file = folder / FILE
        check(
            file.is_file(), f"there is no index in '{folder}': make one with lookalike index MODEL DATA --out {folder}"
        )
        self.database, self.cache = Database(file), Cache(folder / "cache")
        self._view: View | None = None
        self._refreshing = threading.Lock()
        version = self.read_fact("format")
        check(version == FORMAT, f"'{file}' has format {version}, this version reads {FORMAT}: update lookalike")

    @staticmethod
    def create(folder: Path, identity: Identity) -> "SqliteStore":
        """A new, empty index in a folder that is new or empty."""
        taken = folder.exists() and (not folder.is_dir() or any(folder.iterdir()))
        check(not taken, f"'{folder}' exists and is not an index: give a new folder")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"cannot make the folder '{folder}' ({error.strerror}): choose another place") from None
        partial = folder / f".{FILE}{files.PARTIAL}"
        with explained(partial):
            connection = connect(partial)
            connection.executescript(f"BEGIN; {SCHEMA}")
            connection.execute("INSERT INTO facts VALUES ('format', ?)", (FORMAT,))
            generations.begin(connection, identity, current=True)
            connection.execute("INSERT INTO changes (token, time) VALUES (?, ?)", (os.urandom(8).hex(), time.time()))
            connection.execute("COMMIT")
            connection.execute("PRAGMA journal_mode = DELETE")  # one file, until it has its name
            connection.close()
        partial.rename(folder / FILE)
        files.sync_folder(folder)
        return SqliteStore(folder)

    def close(self) -> None:
        self.database.close()

    @property
    def identity(self) -> Identity:
        with self.database.reading() as connection:
            return identity_of(connection)

    def put(
        self, items: Sequence[Item], vectors: Vectors, pictures: Mapping[str, bytes] | None = None,
        generation: int | None = None,
    ) -> None:  # fmt: skip
        ids = [item.id for item in items]
        check_batch(items)
        with self.database.writing() as connection:
            identity = identity_of(connection)
            if generation not in (None, identity.generation):
                raise GenerationError
            vectors = checked(vectors, len(items), identity.dim)
            rows.remove(connection, list(rows.keys_of(connection, ids, complete=False).values()))
            first = rows.next_key(connection)
            rows.insert(connection, items, first, time.time())
            insert_vectors(connection, identity.generation, range(first, first + len(items)), vectors)
            kept = {first + place: (pictures or {}).get(item.id) for place, item in enumerate(items)}
            connection.executemany("INSERT INTO pictures VALUES (?, ?)", [row for row in kept.items() if row[1]])

    def remove(self, ids: Sequence[str]) -> int:
        with self.database.writing() as connection:
            keys = rows.keys_of(connection, ids, complete=False)
            rows.remove(connection, list(keys.values()))
            return len(keys)

    def search(
        self, queries: Vectors, k: int, where: Filter = (), group: str | None = None, leave_out: Sequence[str] = ()
    ) -> list[Answer]:
        check(k > 0, f"k must be at least 1, not {k}")
        while True:
            with self.database.reading() as connection:
                view = self._refreshed(connection)
                if view is None:  # another thread has seen a later change: look at that one
                    continue
                queries = checked(queries, len(queries), identity_of(connection).dim)
                names = rows.names_of(connection)
                if group is not None and group not in names:
                    raise unknown("column", group, names)
                left_out = list(rows.keys_of(connection, leave_out).values())
                search = snapshot.Search(connection, view, k, snapshot.allowed(connection, where), left_out)
                if group is None:
                    return search.answers(queries)
                return [search.grouped(query, names[group][0]) for query in queries]

    def _refreshed(self, connection: sqlite3.Connection) -> View | None:
        """The segments as of this snapshot, or None where those in memory are ahead of it."""
        with self._refreshing:
            view = snapshot.refreshed(connection, self._view, self.cache)
            self._view = view or self._view
            return view

    def vectors(self, ids: Sequence[str]) -> Vectors:
        with self.database.reading() as connection:
            identity, keys = identity_of(connection), rows.keys_of(connection, ids)
            return rows.vectors_of(connection, identity.generation, [keys[one] for one in ids], identity.dim)

    def items(self, ids: Sequence[str]) -> list[Item]:
        with self.database.reading() as connection:
            keys = rows.keys_of(connection, ids)
            return rows.select(connection, np.array([keys[one] for one in ids], np.int64))

    def scan(self, after: str | None = None, where: Filter = ()) -> Iterator[tuple[list[Item], Vectors]]:
        while True:
            with self.database.reading() as connection:
                identity = identity_of(connection)
                clause, parameters = as_sql(where, rows.names_of(connection))
                block = connection.execute(
                    f"SELECT key, id FROM items WHERE id > ? AND {clause} ORDER BY id LIMIT {BLOCK}",
                    (after or "", *parameters),
                ).fetchall()
                if not block:
                    return
                keys = np.array([key for key, _ in block], np.int64)
                items = rows.select(connection, keys)
                vectors = rows.vectors_of(connection, identity.generation, keys.tolist(), identity.dim)
            yield items, vectors
            after = block[-1][1]

    def with_ids(self, ids: Sequence[str]) -> list[Item]:
        with self.database.reading() as connection:
            keys = rows.keys_of(connection, ids, complete=False)
            return rows.select(connection, np.array(list(keys.values()), np.int64))

    def at_paths(self, paths: Sequence[str]) -> dict[str, Item]:
        with self.database.reading() as connection:
            items = rows.select(connection, rows.keys_at(connection, paths))
        return {item.path: item for item in items if item.path is not None}

    def listed(self, where: Filter = (), after: str = "") -> Iterator[Item]:
        while True:
            with self.database.reading() as connection:
                clause, parameters = as_sql(where, rows.names_of(connection))
                statement = f"SELECT key FROM items WHERE id > ? AND {clause} ORDER BY id LIMIT {BLOCK}"
                keys = np.fromiter((row[0] for row in connection.execute(statement, (after, *parameters))), np.int64)
                block = rows.select(connection, keys)
            if not block:
                return
            yield from block
            after = block[-1].id

    def picture(self, id_: str) -> bytes | None:
        with self.database.reading() as connection:
            key = rows.keys_of(connection, [id_])[id_]
            row = connection.execute("SELECT content FROM pictures WHERE key = ?", (key,)).fetchone()
            return None if row is None else bytes(row[0])

    def pictures(self, ids: Sequence[str]) -> dict[str, bytes]:
        with self.database.reading() as connection:
            keys = rows.keys_of(connection, ids, complete=False)
            question = "SELECT content FROM pictures WHERE key = ?"
            contents = {one: connection.execute(question, (key,)).fetchone() for one, key in keys.items()}
            return {one: bytes(row[0]) for one, row in contents.items() if row is not None}

    def begin_generation(self, identity: Identity) -> Identity:
        with self.database.writing() as connection:
            for (number,) in connection.execute("SELECT number FROM generations WHERE current = 0").fetchall():
                connection.execute("DELETE FROM generations WHERE number = ?", (number,))
                connection.execute(f"DROP TABLE vectors_{number}")
            identity = replace(identity, generation=identity_of(connection).generation + 1)
            generations.begin(connection, identity, current=False)
        return identity

    def next_generation(self) -> Identity | None:
        with self.database.reading() as connection:
            return identity_of(connection, current=False)

    def unfilled(self, generation: int, count: int, after: str = "") -> list[Item]:
        with self.database.reading() as connection:
            statement = f"""SELECT key FROM items WHERE id > ? AND key NOT IN (SELECT key FROM vectors_{generation})
                            ORDER BY id LIMIT ?"""
            keys = np.fromiter((row[0] for row in connection.execute(statement, (after, count))), np.int64)
            return rows.select(connection, keys)

    def fill(self, generation: int, ids: Sequence[str], vectors: Vectors) -> None:
        with self.database.writing() as connection:
            identity = identity_of(connection, current=False)
            assert identity is not None and identity.generation == generation  # noqa: PT018
            keys = rows.keys_of(connection, ids, complete=False)  # some may have been removed meanwhile
            named = zip(ids, checked(vectors, len(ids), identity.dim), strict=True)
            statement = f"INSERT OR REPLACE INTO vectors_{generation} VALUES (?, ?)"
            connection.executemany(statement, [(keys[one], vector.tobytes()) for one, vector in named if one in keys])

    def switch(self, generation: int) -> int:
        with self.database.writing() as connection:
            old = identity_of(connection).generation
            missing = connection.execute(
                f"SELECT count(*) FROM items WHERE key NOT IN (SELECT key FROM vectors_{generation})"
            ).fetchone()[0]
            if not missing:
                connection.execute("DELETE FROM generations WHERE number = ?", (old,))
                connection.execute("UPDATE generations SET current = 1 WHERE number = ?", (generation,))
                connection.execute(f"DROP TABLE vectors_{old}")
            return int(missing)

    def count(self, where: Filter = ()) -> int:
        with self.database.reading() as connection:
            clause, parameters = as_sql(where, rows.names_of(connection))
            return int(connection.execute(f"SELECT count(*) FROM items WHERE {clause}", parameters).fetchone()[0])

    def distinct(self, column: str) -> int:
        with self.database.reading() as connection:
            name = rows.physical(connection, column)
            return int(connection.execute(f"SELECT count(DISTINCT {name}) FROM items").fetchone()[0])

    def columns(self) -> Mapping[str, Kind]:
        with self.database.reading() as connection:
            return {name: kind for name, (_, kind) in rows.names_of(connection).items()}

    def know(self, kinds: Mapping[str, Kind]) -> None:
        with self.database.writing() as connection:
            rows.make_columns(connection, kinds)

    def version(self) -> str:
        with self.database.reading() as connection:
            return str(connection.execute("SELECT token FROM changes ORDER BY number DESC LIMIT 1").fetchone()[0])

    def newest(self, count: int) -> list[Item]:
        with self.database.reading() as connection:
            keys = connection.execute("SELECT key FROM items ORDER BY key DESC LIMIT ?", (count,))
            return rows.select(connection, np.fromiter((row[0] for row in keys), np.int64))

    def counted(self, column: str, most: int) -> list[tuple[Value, int]]:
        with self.database.reading() as connection:
            name = rows.physical(connection, column)
            statement = f"""SELECT {name}, count(*) AS times FROM items WHERE {name} IS NOT NULL GROUP BY {name}
                            ORDER BY times DESC, {name} LIMIT ?"""
            return [(value, int(times)) for value, times in connection.execute(statement, (most,))]

    def first_of(self, column: str, values: Sequence[Value]) -> dict[Value, Item]:
        with self.database.reading() as connection:
            statement = f"SELECT min(key) FROM items WHERE {rows.physical(connection, column)} = ?"
            keys = [connection.execute(statement, (value,)).fetchone()[0] for value in values]
            known = [(value, key) for value, key in zip(values, keys, strict=True) if key is not None]
            items = rows.select(connection, np.array([key for _, key in known], np.int64))
            return {value: item for (value, _), item in zip(known, items, strict=True)}

    def extent(self, column: str) -> tuple[Value, Value]:
        with self.database.reading() as connection:
            name = rows.physical(connection, column)
            least, most = (f"SELECT {which}({name}) FROM items" for which in ("min", "max"))  # one each: by the index
            return connection.execute(least).fetchone()[0], connection.execute(most).fetchone()[0]

    def mark(self, mark: Mark, picture: bytes | None = None) -> int:
        with self.database.writing() as connection:
            return marks.add(connection, mark, picture)

    def unmark(self, number: int) -> bool:
        with self.database.writing() as connection:
            return marks.remove(connection, number)

    def marks(self) -> list[Mark]:
        with self.database.reading() as connection:
            return marks.every(connection)

    def marked(self) -> int:
        with self.database.reading() as connection:
            return marks.count(connection)

    def query_picture(self, query: str) -> bytes | None:
        with self.database.reading() as connection:
            return marks.picture(connection, query)

    def read_fact(self, name: str) -> str | None:
        with self.database.reading() as connection:
            row = connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
            return None if row is None else str(row[0])

    def write_fact(self, name: str, text: str | None) -> None:
        with self.database.writing() as connection:
            connection.execute("DELETE FROM facts WHERE name = ?", (name,))
            if text is not None:
                connection.execute("INSERT INTO facts VALUES (?, ?)", (name, text))

    def model_files(self, fingerprint: str) -> dict[str, bytes]:
        with self.database.reading() as connection:
            return dict(connection.execute("SELECT name, content FROM models WHERE fingerprint = ?", (fingerprint,)))

    def keep_model(self, fingerprint: str, content: Mapping[str, bytes]) -> None:
        with self.database.writing() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO models VALUES (?, ?, ?)", [(fingerprint, *file) for file in content.items()]
            )

    def approximate(self, on: bool, progress: Callable[[int, int], None] | None = None) -> None:  # noqa: ARG002
        check(not on, "an index in a folder is exact and needs no approximation: that is for indexes on PostgreSQL")

    def describe(self) -> dict[str, str]:
        return {"on disk": sizes(self.folder, FILE)}

    def check(self) -> list[str]:
        """What is wrong with the truth, one line each."""
        with self.database.reading() as connection:
            lines = [row[0] for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
            generation = identity_of(connection).generation
            for what, statement in (
                ("no vector", f"SELECT count(*) FROM items WHERE key NOT IN (SELECT key FROM vectors_{generation})"),
                (
                    "a vector but no entry",
                    f"SELECT count(*) FROM vectors_{generation} WHERE key NOT IN (SELECT key FROM items)",
                ),
            ):
                count = connection.execute(statement).fetchone()[0]
                lines += [f"{count} item{'s have' if count > 1 else ' has'} {what}"] if count else []
        return lines

    def compact(self) -> None:
        """Give back the space of what was removed, and merge all segments into one."""
        with self.database.writing() as connection:
            connection.execute("DELETE FROM removals")
            connection.execute("DELETE FROM changes")
        with explained(self.database.file):
            self.database.connection().execute("VACUUM")
        with self.database.reading() as connection:
            self._refreshed(connection)

    def backup(self, file: Path) -> None:
        """A copy of the truth as of now, in one file, while others read and write."""
        partial = file.with_name(f".{file.name}{files.PARTIAL}")
        try:
            with explained(file), closing(sqlite3.connect(partial)) as copy:
                self.database.connection().backup(copy)
            files.sync(partial)
            partial.replace(file)
            files.sync_folder(file.parent)
        except OSError as error:
            raise files.cannot_write(file, error) from error
        finally:
            partial.unlink(missing_ok=True)
