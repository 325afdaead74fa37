"""What the graph on PostgreSQL costs beside plain pgvector's at equal recall.

python -m benchmarks.postgres_widths [--rows 200000] [--widths 20 28 …] [--queries 200] [--places OURS PLAIN] [--json …]

Both are loaded and built, then searched at the same widths (`ef`), turn by turn with the same queries: median
milliseconds and recall@10 against float64 brute force. Between two widths the time is interpolated to the recall that
is compared; the ratio has a 95% interval over queries drawn again. "Kept": the width that `status --approximate`
chose, with what it cost. With `--places OURS PLAIN` two databases that are loaded and built already are searched.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import psycopg

from benchmarks import plain_pgvector
from benchmarks.postgres import asking, best, fill, started
from benchmarks.search import K, vectors
from lookalike.search import Index
from lookalike.search.items import Identity
from lookalike.search.stores import places
from lookalike.search.stores.postgres import approximate, building, wire
from lookalike.search.stores.postgres.store import PostgresStore

WIDTHS = (20, 28, 40, 56, 80, 112, 160, 224, 320, 400, 500, 640, 800, 1000)
DRAWS = 1000
SIDES = ("ours", "plain")


@dataclass(frozen=True)
class Curves:
    """Milliseconds and recall by side, width and query."""

    times: np.ndarray
    recalls: np.ndarray

    def drawn(self, which: np.ndarray) -> "Curves":
        return Curves(self.times[..., which], self.recalls[..., which])

    def at(self, recall: float) -> np.ndarray:
        """The median time of both sides at a recall; not a number where no width reaches it."""
        return np.array([_crossing(*side, recall) for side in zip(self.medians, self.means, strict=True)])

    @property
    def medians(self) -> np.ndarray:
        return np.asarray(np.median(self.times, axis=-1))

    @property
    def means(self) -> np.ndarray:
        return np.asarray(self.recalls.mean(-1))

    def ratio(self, recall: float) -> tuple[float, float, float]:
        """Our time over that of plain pgvector, and its interval."""
        draw, count = np.random.default_rng(0), self.times.shape[-1]
        ratios = [_quotient(self.drawn(draw.integers(0, count, (count,))).at(recall)) for _ in range(DRAWS)]
        low, high = np.nanpercentile(ratios, [2.5, 97.5])
        return _quotient(self.at(recall)), float(low), float(high)


def _crossing(times: np.ndarray, recalls: np.ndarray, recall: float) -> float:
    reached = np.flatnonzero(recalls >= recall)
    if not len(reached):
        return float("nan")
    if (place := int(reached[0])) == 0:
        return float(times[0])
    share = (recall - recalls[place - 1]) / (recalls[place] - recalls[place - 1])
    return float(times[place - 1] + share * (times[place] - times[place - 1]))


def _quotient(pair: np.ndarray) -> float:
    return float(pair[0] / pair[1])


def main() -> None:
    given = arguments()
    items, queries = vectors(given.rows, given.dimensions, given.queries, False)
    truth = best(items, queries, None)
    with both(items, given.places) as (store, connection):
        kept = cast(approximate.HnswGraph, store.database.read(approximate.graph_of))
        widths = sorted({*given.widths, kept.width})
        curves = searched(store, connection, kept, widths, queries, truth)
        store.database.write(building.keep, kept)
    print(*lines(curves, widths, kept, given.recalls), sep="\n")
    if given.json is not None:
        content = {"rows": given.rows, "kept": kept.width, "widths": widths, "p50": curves.medians.tolist()}
        ratios = {str(recall): curves.ratio(recall) for recall in given.recalls}
        given.json.write_text(json.dumps({**content, "recall": curves.means.tolist(), "ratios": ratios}, indent=2))


def arguments() -> argparse.Namespace:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--rows", type=int, default=200_000)
    reader.add_argument("--dimensions", type=int, default=128)
    reader.add_argument("--widths", type=int, nargs="+", default=WIDTHS)
    reader.add_argument("--queries", type=int, default=200)
    reader.add_argument("--recalls", type=float, nargs="+", default=[0.95, 0.99])
    reader.add_argument("--places", nargs=2, metavar=("OURS", "PLAIN"), help="addresses of databases that are there")
    reader.add_argument("--json", type=Path)
    return reader.parse_args()


@contextmanager
def both(items: np.ndarray, addresses: Sequence[str] | None) -> Iterator[tuple[PostgresStore, Any]]:
    """An index of ours with its graph, and a connection to plain pgvector with its own."""
    if addresses is not None:
        with psycopg.connect(addresses[1], autocommit=True) as connection:
            wire.register(connection)
            yield cast(PostgresStore, places.opened(addresses[0])), connection
        return
    with started(2) as (one, other), psycopg.connect(other.address, autocommit=True) as connection:
        store = places.created(one.address, Identity(None, "sphere", items.shape[1]))
        fill(store, items)
        Index(store, one.address).approximate(True)
        connection.execute("CREATE EXTENSION vector")
        wire.register(connection)
        plain_pgvector.load(connection, items)
        connection.execute(plain_pgvector.GRAPH)
        yield cast(PostgresStore, store), connection
        store.close()


def searched(
    store: PostgresStore,
    connection: Any,
    kept: approximate.HnswGraph,
    widths: Sequence[int],
    queries: np.ndarray,
    truth: Sequence[set[int]],
) -> Curves:
    """Every width with every query, the two sides in turn."""
    asks = (asking(store), plain_pgvector.asking(connection))
    times, recalls = np.zeros((2, 2, len(widths), len(queries)))
    for row, width in enumerate(widths):
        store.database.write(building.keep, replace(kept, width=width))
        connection.execute(f"SET hnsw.ef_search = {width}; SET hnsw.iterative_scan = strict_order")
        for query in queries[:5]:  # caches and plans
            for ask in asks:
                ask(query, None)
        for column, (query, near) in enumerate(zip(queries, truth, strict=True)):
            for side, ask in enumerate(asks):
                taken, answer = timed(lambda ask=ask, query=query: ask(query, None))  # type: ignore[misc]
                times[side, row, column], recalls[side, row, column] = taken, len(near & set(answer)) / K
    return Curves(times, recalls)


def timed(work: Callable[[], Sequence[int]]) -> tuple[float, Sequence[int]]:
    began = time.perf_counter()
    answer = work()
    return 1e3 * (time.perf_counter() - began), answer


def lines(
    curves: Curves, widths: Sequence[int], kept: approximate.HnswGraph, recalls: Sequence[float]
) -> Iterator[str]:
    for row, width in enumerate(widths):
        sides = [
            f"{name} {ms:.2f} ms ({recall:.4f})"
            for name, ms, recall in zip(SIDES, curves.medians[:, row], curves.means[:, row], strict=True)
        ]
        yield f"ef {width}{' (kept)' if width == kept.width else ''}: {', '.join(sides)}"
    yield f"kept: {kept}"
    for recall in recalls:
        ours, plain = curves.at(recall)
        ratio, low, high = curves.ratio(recall)
        yield f"at recall {recall}: ours {ours:.2f} ms, plain {plain:.2f} ms: {ratio:.2f} × [{low:.2f}, {high:.2f}]"


if __name__ == "__main__":
    main()
