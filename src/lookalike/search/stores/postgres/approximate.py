"""Answers from an approximate index of pgvector (HNSW: Malkov, Yashunin, TPAMI 2020); `building` makes it.

On the sphere and in the ball the graph is built over half precision, which halves it: it only names candidates.

A filter that leaves few rows is answered exactly over those; the graph would lose most of them. Of n items the filter
leaves m: the graph passes about n/m items for every one it may name, an exact look scores m. They cost the same where
m² is about a thousand n. Beyond that the graph is asked for four times the candidates: it stops when it has them, and
of 20,000 items those of a tenth were found at recall@10 0.92 by 16 candidates, at 0.99 by 64.
"""

import json
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float32

from lookalike.search.items import Identity
from lookalike.search.stores.postgres import rows
from lookalike.search.stores.postgres.database import Snapshot

if TYPE_CHECKING:
    from lookalike.search.stores.postgres.searching import Search

FEW = 40  # × √n: rows that a filter leaves of n, so that every one is scored
COUNTED = 60.0  # seconds for which the size of a filter is believed
FILTERS = 1000  # whose sizes are remembered
SPARE = 16  # candidates at least
MORE = 4  # times as many for each of a filter and groups
MOST = 300  # hits: beyond them the graph is no faster
SAMPLE, NEIGHBOURS = 100, 10


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


def graph_for(search: "Search", sizes: Sizes) -> Graph | None:
    """The graph, if it can answer a search with this condition."""
    graph = graph_of(search.snapshot)
    if graph is None or search.k > MOST or (search.filtered and sizes.few(search, graph)):
        return None
    return graph


def indexed(identity: Identity) -> tuple[str, str, str]:
    """What the graph is over, the operator that compares, and the class of operators."""
    half = identity.geometry != "none"
    kind = "halfvec" if half else "vector"
    what = f"vector::halfvec({identity.dim})" if half else "vector"
    return (what, "<#>", f"{kind}_ip_ops") if identity.geometry == "sphere" else (what, "<->", f"{kind}_l2_ops")


def candidates(graph: Graph, query: Float32[np.ndarray, " d"], search: "Search") -> list[tuple[Any, ...]] | None:
    """What the graph names, nothing where it has given up early; None where the index is not as it was known."""
    what, operator, _ = indexed(search.snapshot.identity)
    number = max(SPARE, search.k + search.k // 2) * MORE ** (search.filtered + (search.group is not None))
    width = min(1000, max(graph.width, number))
    name = "id" if search.group is None else f"({search.group} IS NULL, coalesce({search.group}, {search.empty}))::text"
    point = "%s" if what == "vector" else f"%s::halfvec({search.snapshot.identity.dim})"
    near = f"""SELECT ctid AS place, 0 AS score FROM {search.table} WHERE {search.allowed}
               ORDER BY ({what}) {operator} {point} LIMIT {number}"""
    # the left side of a join is there before the right one begins
    settings = f""", set_config('hnsw.ef_search', '{width}', false),
                   set_config('hnsw.iterative_scan', 'relaxed_order', false)"""
    named = search.look(search.at_places(near, name), (*search.left_out_values, query), settings)
    return named if named is None or len(named) == number else []
