"""The approximate index of a generation: how it is built and measured, and dropped.

How widely a graph is searched (`ef`) is not guessed: the smallest width whose answers agree with the exact ones on a
sample, found by halving, since a wider search finds no less. Building is the first 100 steps that are shown, exact
answers the next, then each width that is tried.
"""

import json
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import count
from typing import Any

import numpy as np
import psycopg

from lookalike.errors import check
from lookalike.progress import Progress
from lookalike.search.stores import StorageError
from lookalike.search.stores.postgres import listing, rows
from lookalike.search.stores.postgres.approximate import AGREEMENT, NEIGHBOURS, SAMPLE, HnswGraph, indexed, widen
from lookalike.search.stores.postgres.database import Connection, PostgresDatabase, Snapshot
from lookalike.search.stores.postgres.searching import TableSearch

WIDTHS = [round(20 * 1.1**step) for step in range(42)]  # to 996: pgvector takes 1000
HALF, WHOLE = 4000, 2000  # dimensions of a graph over halfvec and over vector
MEMORY = 1 << 20  # kilobytes that building may take, where the server allows less by default
PART = 100  # steps of building, of exact answers, and of the answers of one width
EVERY = 1.0  # seconds between two looks at how far the server is
SHARE = """SELECT max(blocks_done / nullif(blocks_total, 0)::float) FROM pg_stat_progress_create_index
           WHERE relid = to_regclass(%s)"""


@dataclass(frozen=True)
class Steps:
    """How far building and measuring has come."""

    progress: Progress | None

    def each(self, sample: Sequence[Any], part: int) -> Iterator[Any]:
        """The members of a sample, whose last one ends a part."""
        for number, one in enumerate(sample, start=1):
            yield one
            if self.progress is not None:
                self.progress(part * PART + PART * number // len(sample), max(3, part + 1) * PART)

    @contextmanager
    def watched(self, database: PostgresDatabase, table: str) -> Iterator[None]:
        """Look now and then how much of a table an index has taken in."""
        done = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(database, table, done), daemon=True)
        if self.progress is not None:
            watcher.start()
        try:
            yield
        finally:
            done.set()
            if self.progress is not None:
                watcher.join()

    def _watch(self, database: PostgresDatabase, table: str, done: threading.Event) -> None:
        most = 0
        while self.progress is not None and not done.wait(EVERY):
            with suppress(psycopg.Error, StorageError):
                row = database.plain(lambda connection: connection.execute(SHARE, (table,)).fetchone())
                most = max(most, int(PART * (row[0] or 0.0)) if row else 0)
                self.progress(min(most, PART), 3 * PART)


def build(database: PostgresDatabase, progress: Progress | None = None) -> None:
    """Build the graph of the generation that answers, without stopping readers or writers, and measure it."""
    steps = Steps(progress)
    snapshot = database.read(lambda snapshot: snapshot)
    identity = snapshot.identity
    most = WHOLE if identity.geometry == "none" else HALF
    check(identity.dim <= most, f"a graph has at most {most:,} dimensions, this index {identity.dim:,}: it stays exact")
    if not database.read(_sound):
        with steps.watched(database, snapshot.table):
            database.plain(lambda connection: _create(connection, snapshot))
    database.write(keep, database.read(_measured, steps))


def _name(snapshot: Snapshot) -> str:
    return f"{snapshot.table}_graph"


def _sound(snapshot: Snapshot) -> bool:
    statement = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)"
    return bool(rows.one(snapshot, statement, (_name(snapshot),)))


def _create(connection: Connection, snapshot: Snapshot) -> None:
    what, _, kind = indexed(snapshot.identity)
    connection.execute(f"""SELECT set_config('statement_timeout', '0', false), set_config('maintenance_work_mem',
        greatest(setting::bigint, {MEMORY})::text, false) FROM pg_settings WHERE name = 'maintenance_work_mem'""")
    try:
        for workers in ("", "SET max_parallel_maintenance_workers = 0"):
            connection.execute(f"{workers}; DROP INDEX IF EXISTS {_name(snapshot)}")
            try:
                connection.execute(
                    f"CREATE INDEX CONCURRENTLY {_name(snapshot)} ON {snapshot.table} USING hnsw (({what}) {kind})"
                )
                return
            except psycopg.errors.DiskFull:  # of shared memory, maybe: alone it needs none
                if workers:
                    raise
    finally:
        connection.close()  # with the settings of this session


def _measured(snapshot: Snapshot, steps: Steps) -> HnswGraph:
    """The graph with the smallest width that agrees with exact search, or with the widest."""
    total = listing.count(snapshot, ())
    share = min(100.0, 100 * 2 * SAMPLE / max(1, total))
    drawn = snapshot.connection.execute(
        f"SELECT vector FROM {snapshot.table} TABLESAMPLE BERNOULLI ({share}) ORDER BY random() LIMIT {SAMPLE}",
        binary=True,
    ).fetchall()
    sample = [vector for (vector,) in drawn]
    search = TableSearch(snapshot, NEIGHBOURS + 1, "true", ())
    today, parts = datetime.now(UTC).date().isoformat(), count(2)
    exact = [_similarities(search, vector, None) for vector in steps.each(sample, 1)]

    @cache
    def recall(width: int) -> float:
        graph = HnswGraph(width, 0.0, total, today)
        widen(snapshot.connection, graph.width_for(search))
        answers = (_similarities(search, vector, graph) for vector in steps.each(sample, next(parts)))
        shared = [_agreeing(answer, near) for answer, near in zip(answers, exact, strict=True)]
        return float(np.mean(shared)) if shared else 1.0

    width = narrowest(recall)
    return HnswGraph(width, recall(width), total, today)


def narrowest(recall: Callable[[int], float]) -> int:
    """The smallest width that agrees with exact search, or the widest; six are tried at most.

    >>> narrowest(lambda width: 0.9901 if width >= 100 else 0.98)
    101
    """
    return WIDTHS[min(bisect_left(WIDTHS, AGREEMENT, key=recall), len(WIDTHS) - 1)]


def _similarities(search: TableSearch, vector: Any, graph: HnswGraph | None) -> list[float]:
    answer = search.answer(vector, graph)
    return [] if answer is None else [hit.similarity for hit in answer.hits]


def _agreeing(some: Sequence[float], exact: Sequence[float]) -> float:
    """The share of hits that are as near as they must be: ids would count items with equal vectors as wrong."""
    near = sum(similarity >= exact[-1] for similarity in some) - 1  # one is the item that was asked
    return near / max(1, len(exact) - 1)


def keep(snapshot: Snapshot, graph: HnswGraph | None) -> None:
    snapshot.connection.execute(
        "UPDATE generations SET graph = %s WHERE current", (None if graph is None else json.dumps(asdict(graph)),)
    )


def drop(database: PostgresDatabase) -> None:
    """Exact answers from now on."""
    snapshot = database.read(lambda snapshot: snapshot)
    database.write(keep, None)
    database.plain(lambda connection: connection.execute(f"DROP INDEX IF EXISTS {_name(snapshot)}"))
