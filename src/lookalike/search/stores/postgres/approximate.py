"""An approximate index of pgvector (HNSW: Malkov, Yashunin, TPAMI 2020) beside the exact answer, and its recall.

On the sphere and in the ball the graph is built over half precision, which halves it: it only names candidates. How
widely it is searched (`ef`) is not guessed: the smallest width whose answers agree with the exact ones on a sample.

A filter that leaves few rows is answered exactly over those; the graph would lose most of them. Of n items the filter
leaves m: the graph passes about n/m items for every one it may name, an exact look scores m. They cost the same where
m² is some hundreds of n.
"""

import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float32

from lookalike.errors import check
from lookalike.search.items import Identity
from lookalike.search.stores.postgres import listing, rows
from lookalike.search.stores.postgres.database import Connection, Database, Snapshot

if TYPE_CHECKING:
    from lookalike.search.stores.postgres.searching import Search

FEW = 20  # × √n: rows that a filter leaves of n, so that every one is scored
COUNTED = 60.0  # seconds for which the size of a filter is believed
FILTERS = 1000  # whose sizes are remembered
SPARE = 20  # candidates at least
MOST = 300  # hits: beyond them the graph is no faster
WIDTHS = (40, 80, 160, 320, 640)
AGREEMENT = 0.99
SAMPLE, NEIGHBOURS = 100, 10
HALF, WHOLE = 4000, 2000  # dimensions of a graph over halfvec and over vector
MEMORY = 1 << 20  # kilobytes that building may take, where the server allows less by default


@dataclass(frozen=True)
class Graph:
    """What is known of the graph of one generation."""

    width: int
    recall: float
    items: int  # when it was measured
    date: str

    def __str__(self) -> str:
        return (f"approximate (HNSW, ef {self.width}): recall@{NEIGHBOURS} {self.recall:.3f} on {SAMPLE} of "
                f"{self.items:,} items, {self.date}")  # fmt: skip


def graph_of(snapshot: Snapshot) -> Graph | None:
    return None if snapshot.graph is None else Graph(**json.loads(snapshot.graph))


class Sizes:
    """Which filters leave few items, by counts of the last minute; a wrong guess costs time, never an answer."""

    def __init__(self) -> None:
        self._few: dict[tuple[int, str], tuple[float, bool]] = {}

    def few(self, search: "Search", graph: Graph) -> bool:
        key, now = (search.snapshot.identity.generation, search.condition), time.monotonic()
        until, few = self._few.get(key, (0.0, False))
        if now >= until:
            most = int(FEW * math.sqrt(graph.items))
            counted = f"SELECT 1 FROM {search.table} WHERE {search.condition} LIMIT {most + 1}"
            few = int(rows.one(search.snapshot, f"SELECT count(*) FROM ({counted}) AS counted")) <= most
            if len(self._few) >= FILTERS:
                self._few.clear()
            self._few[key] = now + COUNTED, few
        return few


def graph_for(search: "Search", filtered: bool, sizes: Sizes) -> Graph | None:
    """The graph, if it can answer a search with this condition."""
    graph = graph_of(search.snapshot)
    if graph is None or search.k > MOST or (filtered and sizes.few(search, graph)):
        return None
    return graph


def _indexed(identity: Identity) -> tuple[str, str, str]:
    """What the graph is over, the operator that compares, and the class of operators."""
    half = identity.geometry != "none"
    kind = "halfvec" if half else "vector"
    what = f"vector::halfvec({identity.dim})" if half else "vector"
    return (what, "<#>", f"{kind}_ip_ops") if identity.geometry == "sphere" else (what, "<->", f"{kind}_l2_ops")


def candidates(graph: Graph, query: Float32[np.ndarray, " d"], search: "Search") -> list[tuple[Any, ...]] | None:
    """What the graph names, nothing where it has given up early; None where the index is not as it was known."""
    what, operator, _ = _indexed(search.snapshot.identity)
    number = max(SPARE, 2 * search.k) * (1 if search.group is None else 4)
    width = min(1000, max(graph.width, number))
    name = "id" if search.group is None else f"({search.group} IS NULL, coalesce({search.group}, {search.empty}))::text"
    asked = "%s" if what == "vector" else f"%s::halfvec({search.snapshot.identity.dim})"
    near = f"""SELECT ctid AS place, 0 AS score FROM {search.table} WHERE {search.allowed}
               ORDER BY ({what}) {operator} {asked} LIMIT {number}"""
    # the left side of a join is there before the right one begins
    settings = f""", set_config('hnsw.ef_search', '{width}', false),
                   set_config('hnsw.iterative_scan', 'relaxed_order', false)"""
    named = search.look(search.at_places(near, name), (*search.left_out_values, query), settings)
    return named if named is None or len(named) == number else []


def build(database: Database) -> None:
    """Build the graph of the generation that answers, without stopping readers or writers, and measure it."""
    snapshot = database.read(lambda snapshot: snapshot)
    identity = snapshot.identity
    most = WHOLE if identity.geometry == "none" else HALF
    check(identity.dim <= most, f"a graph has at most {most:,} dimensions, this index {identity.dim:,}: it stays exact")
    if not database.read(_sound):
        database.plain(lambda connection: _create(connection, snapshot))
    database.write(_keep, database.read(_measured))


def _name(snapshot: Snapshot) -> str:
    return f"{snapshot.table}_graph"


def _sound(snapshot: Snapshot) -> bool:
    statement = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)"
    return bool(rows.one(snapshot, statement, (_name(snapshot),)))


def _create(connection: Connection, snapshot: Snapshot) -> None:
    import psycopg

    what, _, kind = _indexed(snapshot.identity)
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


def _measured(snapshot: Snapshot) -> Graph:
    """The graph with the smallest width that agrees with exact search, or with the widest."""
    from lookalike.search.stores.postgres.searching import Search

    total = listing.count(snapshot, ())
    share = min(100.0, 100 * 2 * SAMPLE / max(1, total))
    drawn = snapshot.connection.execute(
        f"SELECT vector FROM {snapshot.table} TABLESAMPLE BERNOULLI ({share}) ORDER BY random() LIMIT {SAMPLE}",
        binary=True,
    ).fetchall()
    sample = [vector for (vector,) in drawn]
    search = Search(snapshot, NEIGHBOURS + 1, "true", (), None, "''")
    today, best = datetime.now(UTC).date().isoformat(), Graph(0, 0.0, total, "")
    exact = [_similarities(search, vector, None) for vector in sample]
    for width in WIDTHS:
        graph = Graph(width, 0.0, total, today)
        shared = [_agreeing(_similarities(search, vector, graph), near)
                  for vector, near in zip(sample, exact, strict=True)]  # fmt: skip
        best = replace(graph, recall=float(np.mean(shared)) if shared else 1.0)
        if best.recall >= AGREEMENT:
            break
    return best


def _similarities(search: "Search", vector: Any, graph: Graph | None) -> list[float]:
    answer = search.answer(vector, graph)
    return [] if answer is None else [hit.similarity for hit in answer.hits]


def _agreeing(some: Sequence[float], exact: Sequence[float]) -> float:
    """The share of hits that are as near as they must be: ids would count items with equal vectors as wrong."""
    near = sum(similarity >= exact[-1] for similarity in some) - 1  # one is the item that was asked
    return near / max(1, len(exact) - 1)


def _keep(snapshot: Snapshot, graph: Graph | None) -> None:
    snapshot.connection.execute(
        "UPDATE generations SET graph = %s WHERE current", (None if graph is None else json.dumps(asdict(graph)),)
    )


def drop(database: Database) -> None:
    """Exact answers from now on."""
    snapshot = database.read(lambda snapshot: snapshot)
    database.write(_keep, None)
    database.plain(lambda connection: connection.execute(f"DROP INDEX IF EXISTS {_name(snapshot)}"))
