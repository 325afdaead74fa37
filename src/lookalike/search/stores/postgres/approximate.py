"""Answers from an approximate index of pgvector (HNSW: Malkov, Yashunin, TPAMI 2020); `building` makes it.

On the sphere and in the ball the graph is built over half precision, which halves it: it only names candidates. The
server scores these in float32 and sends the best of them; so the order of half precision costs no hit.

A filter that leaves few rows is answered exactly over those; the graph would lose most of them. Of n items the filter
leaves m: the graph passes about n/m items for every one it may name, an exact scan scores m. They cost the same where
m² is about a thousand n, but the graph loses hits long before: those of a tenth of a million items were found at
recall@10 0.757, six times as fast. So an exact scan serves three times as many. Beyond that the graph is asked for four
times the candidates, and sends all of them: it stops when it has them, and of 20,000 items those of a tenth were found
at 0.92 by 16 candidates, at 0.99 by 64.
"""

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Float32
from psycopg.pq import TransactionStatus

from lookalike.search.filters import Filter
from lookalike.search.items import Identity
from lookalike.search.stores.postgres import rows
from lookalike.search.stores.postgres.database import Connection, Snapshot

if TYPE_CHECKING:
    from lookalike.search.stores.postgres.searching import TableSearch

FEW = 120  # × √n: rows that a filter leaves of n, so that every one is scored
COUNTED = 60.0  # seconds for which the size of a filter is believed
FILTERS = 1000  # whose sizes are remembered
LEAST = 16  # candidates at least
SPARE = 6  # candidates beyond the hits that are sent: float32 and float64 may order them otherwise
MORE = 4  # times as many for a filter
MOST = 300  # hits: beyond them the graph is no faster
SAMPLE, NEIGHBOURS = 400, 10  # misses come in bunches: of 100 items they say little about 0.99
AGREEMENT = 0.99  # recall that a graph must reach
WIDEN = "SELECT set_config('hnsw.ef_search', %s, false), set_config('hnsw.iterative_scan', 'relaxed_order', false)"


@dataclass(frozen=True)
class HnswGraph:
    """What is known of the graph of one generation."""

    width: int
    recall: float
    items: int  # when it was measured
    date: str

    def width_for(self, search: "TableSearch") -> int:
        return min(1000, max(self.width, self.candidates(search)))

    def candidates(self, search: "TableSearch") -> int:
        """How many the graph names."""
        if not search.filtered:
            return min(2 * search.k + 20, max(self.width, search.k + SPARE))
        return MORE * max(LEAST, search.k + search.k // 2)

    def __str__(self) -> str:
        text = (
            f"approximate (HNSW, ef {self.width}): recall@{NEIGHBOURS} {self.recall:.3f} on "
            f"{min(SAMPLE, self.items)} of {self.items:,} items, {self.date}"
        )
        return text if self.recall >= AGREEMENT else f"{text}; that is less than {AGREEMENT}: --exact drops the graph"


def graph_of(snapshot: Snapshot) -> HnswGraph | None:
    return None if snapshot.graph is None else _read(snapshot.graph)


@lru_cache(maxsize=16)
def _read(text: str) -> HnswGraph:
    return HnswGraph(**json.loads(text))


class SearchMemory:
    """What is remembered from one search to the next: filters as SQL, which of them leave few items, by counts of the
    last minute (a wrong guess costs time, never an answer), and how widely each connection searches the graph."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._clauses: dict[tuple[str, Filter], str] = {}
        self._few: dict[tuple[int, str], tuple[float, bool]] = {}
        self._widths: WeakKeyDictionary[Connection, int] = WeakKeyDictionary()

    def clause(self, snapshot: Snapshot, where: Filter) -> str:
        key = snapshot.state, where
        if key not in self._clauses:
            if len(self._clauses) >= FILTERS:
                self._clauses.clear()
            self._clauses[key] = rows.literal_clause(snapshot, where)
        return self._clauses[key]

    def few(self, search: "TableSearch", graph: HnswGraph) -> bool:
        key, now = (search.snapshot.identity.generation, search.condition), self._clock()
        until, few = self._few.get(key, (0.0, False))
        if now >= until:
            most = int(FEW * math.sqrt(graph.items))
            counted = f"SELECT 1 FROM {search.table} WHERE {search.condition} LIMIT {most + 1}"
            few = int(rows.one(search.snapshot, f"SELECT count(*) FROM ({counted}) AS counted")) <= most
            if len(self._few) >= FILTERS:
                self._few.clear()
            self._few[key] = now + COUNTED, few
        return few

    def widen(self, connection: Connection, width: int) -> None:
        if self._widths.get(connection) == width:
            return
        widen(connection, width)
        self._widths.pop(connection, None)
        if connection.info.transaction_status is TransactionStatus.IDLE:  # what a transaction sets may be undone
            self._widths[connection] = width


def widen(connection: Connection, width: int) -> None:
    """From now on this connection searches graphs so widely, and goes on where a condition has left too few."""
    connection.execute(WIDEN, (str(width),))


def graph_for(search: "TableSearch", memory: SearchMemory) -> HnswGraph | None:
    """The graph, if it can answer a search with this condition; the connection is then set for it."""
    graph = graph_of(search.snapshot)
    if graph is None or search.k > MOST or (search.filtered and memory.few(search, graph)):
        return None
    memory.widen(search.snapshot.connection, graph.width_for(search))
    return graph


def indexed(identity: Identity) -> tuple[str, str, str]:
    """What the graph is over, the operator that compares, and the class of operators."""
    half = identity.geometry != "none"
    kind = "halfvec" if half else "vector"
    what = f"vector::halfvec({identity.dim})" if half else "vector"
    return (what, "<#>", f"{kind}_ip_ops") if identity.geometry == "sphere" else (what, "<->", f"{kind}_l2_ops")


def candidates(
    query: Float32[np.ndarray, " d"], search: "TableSearch", graph: HnswGraph
) -> list[tuple[Any, ...]] | None:
    """The best that the graph names, nothing where it gave up early; None where the index is not as it was known."""
    what, operator, _ = indexed(search.snapshot.identity)
    number = graph.candidates(search)
    sent = number if search.filtered else min(number, search.k + SPARE)
    point = "%s" if what == "vector" else f"%s::halfvec({search.snapshot.identity.dim})"
    near = f"""SELECT *, {search.score} AS score FROM {search.table} WHERE {search.allowed}
               ORDER BY ({what}) {operator} {point} LIMIT {number}"""
    best = f"""SELECT score, vector_send(vector), {search.columns} FROM ({near}) AS near
               ORDER BY score DESC LIMIT {sent}"""
    named = search.selected(best, (query, *search.left_out_values, query))
    return named if named is None or len(named) == sent else []
