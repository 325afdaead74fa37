"""An index on a PostgreSQL server with pgvector: the same answers as from a folder, for many clients at once.

Every change is one transaction, on the disk of the server before it is acknowledged; readers never wait for a writer.
A server that restarts is waited for. Needs the extra `pgvector`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from lookalike.search.filters import Filter, Kind
from lookalike.search.items import Answer, Identity, Item, Mark, Value, Vectors
from lookalike.search.stores import copying, fields
from lookalike.search.stores.postgres import (
    approximate,
    building,
    contents,
    filling,
    listing,
    marks,
    rows,
    schema,
    searching,
)
from lookalike.search.stores.postgres.address import Address
from lookalike.search.stores.postgres.building import Progress
from lookalike.search.stores.postgres.database import PATIENCE, Database, Snapshot

BLOCK = 5_000  # rows of one step of a scan


class PostgresStore:
    """One schema of one database; see `Store`."""

    def __init__(self, address: Address, patience: float = PATIENCE) -> None:
        self.address, self.database, self._memory = address, Database(address, patience), approximate.Memory()
        schema.opened(self.database)
        self.database.note_changes()

    @staticmethod
    def create(address: Address, identity: Identity, facts: Mapping[str, str] | None = None) -> None:
        """A new index without items, with these facts."""
        with closing(Database(address)) as database:
            schema.create(database, identity, facts or {})

    @staticmethod
    def exists(address: Address) -> bool:
        with closing(Database(address)) as database:
            return database.plain(lambda connection: schema.there(connection, address.index))

    def close(self) -> None:
        self.database.close()

    @property
    def identity(self) -> Identity:
        return self.database.read(lambda snapshot: snapshot.identity)

    def put(
        self, items: Sequence[Item], vectors: Vectors, pictures: Mapping[str, bytes] | None = None,
        generation: int | None = None,
    ) -> None:  # fmt: skip
        fields.check_batch(items)
        self.database.write(rows.put, items, vectors, pictures or {}, generation)

    def remove(self, ids: Sequence[str]) -> int:
        return self.database.write(rows.remove, ids)

    def search(
        self, queries: Vectors, k: int, where: Filter = (), group: str | None = None, leave_out: Sequence[str] = ()
    ) -> list[Answer]:
        question = (queries, k, where, group, leave_out, self._memory)
        answers = self.database.glance(searching.search, *question) if len(queries) == 1 and not leave_out else None
        answers = self.database.read(searching.search, *question) if answers is None else answers
        assert answers is not None  # a transaction sees the index as of one moment
        return answers

    def vectors(self, ids: Sequence[str]) -> Vectors:
        return self.database.read(rows.vectors_of, ids)

    def items(self, ids: Sequence[str]) -> list[Item]:
        return self.database.read(rows.items, ids)

    def scan(self, after: str | None = None, where: Filter = ()) -> Iterator[tuple[list[Item], Vectors]]:
        last = after or ""
        while (block := self.database.read(listing.scanned, where, last, BLOCK))[0]:
            yield block
            last = block[0][-1].id

    def with_ids(self, ids: Sequence[str]) -> list[Item]:
        return self.database.read(rows.with_ids, ids)

    def at_paths(self, paths: Sequence[str]) -> dict[str, Item]:
        return self.database.read(rows.at_paths, paths)

    def listed(self, where: Filter = (), after: str = "") -> Iterator[Item]:
        while block := self.database.read(listing.listed, where, after, BLOCK):
            yield from block
            after = block[-1].id

    def picture(self, id_: str) -> bytes | None:
        return self.database.read(contents.picture, id_)

    def pictures(self, ids: Sequence[str]) -> dict[str, bytes]:
        return self.database.read(contents.pictures, ids)

    def count(self, where: Filter = ()) -> int:
        return self.database.read(listing.count, where)

    def distinct(self, column: str) -> int:
        return self.database.read(listing.distinct, column)

    def version(self) -> str:
        return str(self.database.read(rows.one, "SELECT coalesce(sum(number), 0) FROM changes"))

    def newest(self, count: int) -> list[Item]:
        return self.database.read(listing.newest, count)

    def counted(self, column: str, most: int) -> list[tuple[Value, int]]:
        return self.database.read(listing.counted, column, most)

    def first_of(self, column: str, values: Sequence[Value]) -> dict[Value, Item]:
        return self.database.read(listing.first_of, column, values)

    def extent(self, column: str) -> tuple[Value, Value]:
        return self.database.read(listing.extent, column)

    def mark(self, mark: Mark, picture: bytes | None = None) -> int:
        return self.database.write(marks.add, mark, picture)

    def unmark(self, number: int) -> bool:
        return self.database.write(marks.remove, number)

    def marks(self) -> list[Mark]:
        return self.database.read(marks.every)

    def marked(self) -> int:
        return self.database.read(marks.count)

    def query_picture(self, query: str) -> bytes | None:
        return self.database.read(marks.picture, query)

    def columns(self) -> Mapping[str, Kind]:
        return self.database.read(lambda snapshot: {name: kind for name, (_, kind) in snapshot.names.items()})

    def know(self, kinds: Mapping[str, Kind]) -> None:
        self.database.write(rows.know, kinds)

    def read_fact(self, name: str) -> str | None:
        return self.database.read(rows.one, "SELECT value FROM facts WHERE name = %s", (name,))  # type: ignore[no-any-return]

    def write_fact(self, name: str, text: str | None) -> None:
        self.database.write(contents.write_fact, name, text)

    def begin_generation(self, identity: Identity) -> Identity:
        return self.database.write(schema.begin_next, identity)

    def next_generation(self) -> Identity | None:
        return self.database.read(lambda snapshot: snapshot.upcoming)

    def unfilled(self, generation: int, count: int, after: str = "") -> list[Item]:
        return self.database.read(filling.unfilled, generation, count, after)

    def fill(self, generation: int, ids: Sequence[str], vectors: Vectors) -> None:
        self.database.write(filling.fill, generation, ids, vectors)

    def switch(self, generation: int) -> int:
        return self.database.write(schema.switch, generation)

    def model_files(self, fingerprint: str) -> dict[str, bytes]:
        return self.database.read(contents.model_files, fingerprint)

    def keep_model(self, fingerprint: str, files: Mapping[str, bytes]) -> None:
        self.database.write(contents.keep_model, fingerprint, files)

    def approximate(self, on: bool, progress: Progress | None = None) -> None:
        building.build(self.database, progress) if on else building.drop(self.database)

    def describe(self) -> dict[str, str]:
        return self.database.read(_described) | {"server": self.address.shown}

    def check(self) -> list[str]:
        return self.database.read(contents.troubles)

    def compact(self) -> None:
        for table in self.database.read(lambda snapshot: snapshot.tables):
            self.database.plain(lambda connection, table=table: connection.execute(f"VACUUM ANALYZE {table}"))  # type: ignore[misc]

    def backup(self, file: Path) -> None:
        copying.into_file(self, file)


def _described(snapshot: Snapshot) -> dict[str, str]:
    size = "SELECT pg_total_relation_size(%s::regclass) / 1e6"
    parts = {"items": snapshot.table, "pictures": "pictures", "models": "models"}
    sizes = [f"{what} {float(rows.one(snapshot, size, (table,))):,.1f} MB" for what, table in parts.items()]
    graph = approximate.graph_of(snapshot)
    return {"answers": "exact" if graph is None else str(graph), "on disk": ", ".join(sizes)}
