"""An index on a PostgreSQL server with pgvector: the same answers as from a folder, for many clients at once.

Every change is one transaction, on the disk of the server before it is acknowledged; readers never wait for a writer.
A server that restarts is waited for. Needs the extra `pgvector`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import Any

from lookalike.progress import Progress
from lookalike.search.filters import Filter, Kind
from lookalike.search.items import Answer, Identity, Item, Near, Nearest, Value, Vectors
from lookalike.search.stores import Forgotten, Summary, copying, fields
from lookalike.search.stores.postgres import (
    approximate,
    building,
    forgetting,
    listing,
    rows,
    schema,
    searching,
    soundness,
)
from lookalike.search.stores.postgres.address import Address
from lookalike.search.stores.postgres.approximate import SearchMemory
from lookalike.search.stores.postgres.database import PATIENCE, PostgresDatabase, Snapshot
from lookalike.search.stores.postgres.documents import PostgresDocuments
from lookalike.search.stores.postgres.filling import PostgresGenerations
from lookalike.search.stores.postgres.log import PostgresLog
from lookalike.search.stores.postgres.marks import PostgresMarks

BLOCK = 5_000  # rows of one step of a scan


class PostgresStore:
    """One schema of one database; see `Store`."""

    def __init__(self, address: Address, patience: float = PATIENCE) -> None:
        self.address, self.database, self._memory = address, PostgresDatabase(address, patience), SearchMemory()
        self.documents = PostgresDocuments(self.database)
        self.marks = PostgresMarks(self.database)
        self.log = PostgresLog(self.database)
        self.generations = PostgresGenerations(self.database)
        schema.opened(self.database)
        self.database.note_changes()

    @staticmethod
    def create(address: Address, identity: Identity, facts: Mapping[str, str] | None = None) -> None:
        """A new index without items, with these facts."""
        with closing(PostgresDatabase(address)) as database:
            schema.create(database, identity, facts or {})

    @staticmethod
    def exists(address: Address) -> bool:
        with closing(PostgresDatabase(address)) as database:
            return database.plain(lambda connection: schema.there(connection, address.index))

    def close(self) -> None:
        self.database.close()

    def steady(self) -> AbstractContextManager[object]:
        return nullcontext()

    @property
    def identity(self) -> Identity:
        return self.database.read(lambda snapshot: snapshot.identity)

    def put(
        self,
        items: Sequence[Item],
        vectors: Vectors,
        pictures: Mapping[str, bytes] | None = None,
        generation: int | None = None,
    ) -> None:
        fields.check_batch(items)
        self.database.write(rows.put, items, vectors, pictures or {}, generation)

    def remove(self, ids: Sequence[str]) -> int:
        return self.database.write(rows.remove, ids)

    def forget(self, ids: Sequence[str]) -> Forgotten:
        return forgetting.forget(self.database, ids)

    def search(self, queries: Vectors, k: int, where: Filter = (), leave_out: Sequence[str] = ()) -> list[Answer]:
        return self._search(queries, k, where, leave_out, self._memory)

    def nearest(
        self, queries: Vectors, k: int, column: str, where: Filter = (), leave_out: Sequence[str] = ()
    ) -> list[Nearest]:
        answers = self._search(queries, k, where, leave_out, self._memory, column)
        return [
            Nearest(
                [Near(hit.id, hit.item.value(column), hit.similarity) for hit in answer.hits],
                answer.certified,
                answer.generation,
            )
            for answer in answers
        ]

    def _search(self, queries: Vectors, k: int, where: Filter, leave_out: Sequence[str], *rest: Any) -> list[Answer]:
        question = (queries, k, where, leave_out, *rest)
        answers = self.database.glance(searching.search, *question) if len(queries) == 1 and not leave_out else None
        answers = self.database.read(searching.search, *question) if answers is None else answers
        assert answers is not None  # a transaction sees the index as of one moment
        return answers

    def vectors(self, ids: Sequence[str]) -> Vectors:
        return self.database.read(rows.vectors_of, ids)

    def items(self, ids: Sequence[str]) -> list[Item]:
        return self.database.read(rows.items, ids)

    def scan(self, after: str | None = None, where: Filter = ()) -> Iterator[tuple[list[Item], Vectors]]:
        last, generation = after or "", self.identity.generation
        while (block := self.database.read(listing.scanned, generation, where, last, BLOCK))[0]:
            yield block
            last = block[0][-1].id

    def at_paths(self, paths: Sequence[str]) -> dict[str, Item]:
        return self.database.read(rows.at_paths, paths)

    def sample(self, count: int) -> list[Item]:
        return self.database.read(listing.sample, count)

    def listed(self, where: Filter = (), after: str = "") -> Iterator[Item]:
        while block := self.database.read(listing.listed, where, after, BLOCK):
            yield from block
            after = block[-1].id

    def count(self, where: Filter = ()) -> int:
        return self.database.read(listing.count, where)

    def version(self) -> str:
        return str(self.database.read(rows.one, "SELECT coalesce(sum(number), 0) FROM changes"))

    def first_of(self, column: str, values: Sequence[Value]) -> dict[Value, Item]:
        return self.database.read(listing.first_of, column, values)

    def summary(self, columns: Sequence[str], values: int = 0, newest: int = 0) -> Summary:
        return self.database.read(listing.summary, columns, values, newest)

    def columns(self) -> Mapping[str, Kind]:
        return self.database.read(lambda snapshot: {name: kind for name, (_, kind) in snapshot.names.items()})

    def know(self, kinds: Mapping[str, Kind]) -> None:
        self.database.write(rows.know, kinds)

    def approximate(self, on: bool, progress: Progress | None = None) -> None:
        """Answer from an approximate index, and measure it; or exactly, as without it."""
        building.build(self.database, progress) if on else building.drop(self.database)

    def describe(self) -> dict[str, str]:
        return self.database.read(_described) | {"server": self.address.shown}

    def check(self) -> list[str]:
        return self.database.read(soundness.problems)

    def compact(self) -> None:
        for table in self.database.read(lambda snapshot: snapshot.tables):
            self.database.plain(lambda connection, table=table: connection.execute(f"VACUUM ANALYZE {table}"))  # type: ignore[misc]

    def backup(self, file: Path) -> None:
        copying.into_file(self, file)


def _described(snapshot: Snapshot) -> dict[str, str]:
    size = "SELECT pg_total_relation_size(%s::regclass) / 1e6"
    parts = {"items": snapshot.table, "pictures": "pictures", "models": "models"}
    sizes = {what: float(rows.one(snapshot, size, (table,))) for what, table in parts.items()}
    count = int(rows.one(snapshot, f"SELECT count(*) FROM {snapshot.table}"))
    graph = approximate.graph_of(snapshot)
    each = f"{1e6 * sizes['items'] / max(1, count):,.0f} bytes, with the graph where there is one"
    return {
        "answers": "exact" if graph is None else str(graph),
        "on disk": ", ".join(f"{what} {size:,.1f} MB" for what, size in sizes.items()),
    } | ({"per photo": each} if count else {})
