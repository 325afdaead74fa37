"""Search beside faiss, hnswlib, usearch and numpy, in one run: time per query, recall, build, load, memory, updates.

python -m benchmarks.search [--rows 100000 1000000] [--width 128] [--queries 200] [--collapsed] [--photos FOLDER …]
                            [--no-graphs] [--graph-minutes 15] [--json FILE]

Every peer gets one thread; ours is shown with one and with two. Recall@10 is measured against float64 brute force.
Vectors are drawn, or those of the photos in FOLDERs (EfficientNet-lite0, whitened on half of the classes) repeated as
often as --rows needs, with half a difference of two photos of one class as noise; queries are photos that are not among
them. Beyond 1,280 numbers the first ones come again, as a head beside features.
Graphs (HNSW) take minutes to build at a million items: --no-graphs leaves them out, --graph-minutes bounds each one.
What is measured is in FILE at once; a second call with the same FILE measures only what is missing there.
"""

import argparse
import gc
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch

from benchmarks.verdicts import features, unit
from lookalike.models.whitening import whitened_axes, whitening
from lookalike.search.items import Identity, Item
from lookalike.search.scan import rounded as scan
from lookalike.search.stores.sqlite import segments
from lookalike.search.stores.sqlite.store import SqliteStore

K = 10
PART = 20_000  # items that peers are given at a time
Ask = Callable[[np.ndarray], Sequence[int]]
Peer = tuple[Ask, Callable[[str], None]]  # how to ask it, and how to save it


def vectors(rows: int, width: int, queries: int, collapsed: bool) -> tuple[np.ndarray, np.ndarray]:
    """A mixture of clusters of about 20 items; `collapsed`: all of them in one direction."""
    draw = np.random.default_rng(0)
    centres = draw.standard_normal((rows // 20, width), dtype=np.float32)
    push = 12 * np.ones(width, np.float32) if collapsed else np.zeros(width, np.float32)

    def unit(which: np.ndarray) -> np.ndarray:
        """In parts, so that ten million take little more memory than themselves."""
        points = np.empty((len(which), width), np.float32)
        for start in range(0, len(which), PART):
            near = centres[which[start : start + PART]]
            part = near + 0.8 * draw.standard_normal(near.shape, dtype=np.float32) + push
            points[start : start + PART] = part / np.linalg.norm(part, axis=1, keepdims=True)
        return points

    return unit(draw.integers(0, len(centres), rows)), unit(draw.integers(0, len(centres), queries))


def repeated_photos(folders: Sequence[Path], rows: int, width: int, queries: int) -> tuple[np.ndarray, np.ndarray]:
    """What many photos would give, from those there are."""
    draw = np.random.default_rng(0)
    read = [features(folder) for folder in folders]
    points = np.concatenate([unit(own) for own, _ in read])
    names = [f"{number} {label}" for number, (_, own) in enumerate(read) for label in own]
    labels = np.unique(names, return_inverse=True)[1]
    taught = np.isin(labels, draw.permutation(labels.max() + 1)[: (labels.max() + 1) // 2])
    mean = points[taught].mean(0)
    known, of = torch.from_numpy(points[taught] - mean), torch.from_numpy(labels[taught])
    axes = whitened_axes(known, whitening(known, of), min(width, points.shape[1])).numpy()
    real = unit((points - mean) @ axes.T)
    real = unit(np.concatenate((real, real[:, : width - real.shape[1]]), axis=1))
    order = draw.permutation(len(real))
    by_class = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[by_class], np.arange(labels.max() + 2))
    items = np.empty((rows, width), np.float32)
    for start in range(0, rows, PART):
        which = order[queries:][np.arange(start, min(start + PART, rows)) % (len(real) - queries)]
        drawn = labels[draw.integers(0, len(real), len(which))]
        one, other = (by_class[draw.integers(starts[drawn], starts[drawn + 1])] for _ in range(2))
        items[start : start + PART] = unit(real[which] + 0.5 * (real[one] - real[other]))
    return items, real[order[:queries]]


def truth(items: np.ndarray, queries: np.ndarray) -> list[set[int]]:
    result = []
    for query in queries:
        near = np.argpartition(-(items @ query), 200)[:200]
        exact = items[near].astype(np.float64) @ query.astype(np.float64)
        result.append(set(near[np.lexsort((near, -exact))[:K]].tolist()))
    return result


def timed(name: str, ask: Ask, queries: np.ndarray, right: list[set[int]]) -> dict[str, Any]:
    """Processor and wall time per query, and how much of the exact answer was found."""
    for query in queries[:3]:
        ask(query)
    processor, wall, answers = [], [], []
    for query in queries:
        began, clock = time.process_time(), time.perf_counter()
        answers.append(ask(query))
        processor.append(1e3 * (time.process_time() - began))
        wall.append(1e3 * (time.perf_counter() - clock))
    recall = np.mean([len(set(map(int, answer)) & good) / K for answer, good in zip(answers, right, strict=False)])
    return {
        "name": name,
        "processor": statistics.median(processor),
        "p50": statistics.median(wall),
        "p99": float(np.percentile(wall, 99)),
        "recall": float(recall),
    }


def ours(
    items: np.ndarray, queries: np.ndarray, right: list[set[int]], place: Path
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The scan alone, and the whole store around it."""
    rows = []
    view = segments.SegmentView((segments.build(np.arange(len(items)), items, True),), 1, 1, "", True)
    for threads in (1, 2):
        certified: list[bool] = []

        def ask(query: np.ndarray, certified: list[bool] = certified) -> list[int]:
            (best,) = view.nearest(query[None], K)
            certified.append(best.certified)
            return [int(key) for key in best.keys[np.lexsort((best.keys, -best.scores))][:K]]

        scan.THREADS = threads
        rows.append(timed(f"lookalike scan, {threads} thread{'s' * (threads > 1)}", ask, queries, right))
        rows[-1]["certified"] = float(np.mean(certified))
    many = min(64, len(queries))
    began = time.process_time()
    list(view.nearest(queries[:many], K))
    rows.append(
        {"name": f"lookalike scan, {many} queries in one call", "processor": 1e3 * (time.process_time() - began) / many}
    )
    del view
    gc.collect()
    facts = store_facts(items, queries, place)
    store = SqliteStore(place)
    rows.append(
        timed(
            "lookalike store, 2 threads",
            lambda query: [int(hit.id) for hit in store.search(query[None], K)[0].hits],
            queries,
            right,
        )
    )
    store.close()
    return rows, facts


def store_facts(items: np.ndarray, queries: np.ndarray, place: Path) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    began = time.perf_counter()
    store = SqliteStore.create(place, Identity("benchmark", "sphere", items.shape[1]))
    for start in range(0, len(items), 10_000):
        store.put(
            [Item(f"{row:08d}") for row in range(start, min(start + 10_000, len(items)))], items[start : start + 10_000]
        )
    facts["bulk write, s"] = time.perf_counter() - began
    began = time.perf_counter()
    store.search(queries[:1], K)
    facts["cache built, s"] = time.perf_counter() - began
    store.close()
    facts |= opening(place)
    store = SqliteStore(place)
    store.search(queries[:1], K)
    new = [Item(f"new-{row:05d}") for row in range(1000)]
    began = time.perf_counter()
    store.put(new, items[:1000])
    facts["add 1,000, ms"] = 1e3 * (time.perf_counter() - began)
    assert store.search(items[:1], 2)[0].hits[1].id.startswith("new-")
    facts["add 1,000 and find one, ms"] = 1e3 * (time.perf_counter() - began)
    began = time.perf_counter()
    store.remove([item.id for item in new])
    facts["remove 1,000, ms"] = 1e3 * (time.perf_counter() - began)
    store.close()
    facts["on disk, MB"] = sum(file.stat().st_size for file in place.rglob("*") if file.is_file()) / 1e6
    return facts


OPENING = """
import sys, time, psutil, numpy as np
from pathlib import Path
from lookalike.search.stores.sqlite.store import SqliteStore
from lookalike.search.scan import rounded as scan
def anonymous():
    return sum(part.anonymous for part in psutil.Process().memory_maps()) / 1e6
before, began = anonymous(), time.perf_counter()
store = SqliteStore(Path(sys.argv[1]))
store.search(np.eye(1, int(sys.argv[2]), dtype=np.float32), 1)
print(time.perf_counter() - began, anonymous() - before)
"""


def opening(place: Path) -> dict[str, Any]:
    """Seconds until the first answer and anonymous memory, in a process of its own."""
    width = str(SqliteStore(place).identity.dim)
    done = subprocess.run(
        [sys.executable, "-c", OPENING, str(place), width], capture_output=True, text=True, check=True
    )
    seconds, memory = done.stdout.split()
    return {"opened and first answer, s": float(seconds), "anonymous memory, MB": float(memory)}


def peers(
    items: np.ndarray, queries: np.ndarray, right: list[set[int]], folder: Path, options: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """One after the other, but for those that `options.known` has; a graph may be left unfinished."""
    if "numpy float32" not in options.known:
        yield timed(
            "numpy float32", lambda query: np.argpartition(-(items @ query), K)[:K].tolist(), queries[:20], right
        )
    exact = {"faiss flat": _faiss_flat, "faiss SQ8 + rescoring": _faiss_sq8}
    for name, make in (exact if options.no_graphs else exact | GRAPHS).items():
        if name in options.known:
            continue
        before, began = psutil.Process().memory_info().rss, time.perf_counter()
        try:
            ask, save = make(items, began + 60 * options.graph_minutes)
        except ImportError:
            print(f"{name} is not installed: left out", flush=True)
            continue
        except TimeoutError as late:
            yield {"name": name, "unfinished": f"not built within {options.graph_minutes:g} minutes: {late}"}
            continue
        built = time.perf_counter() - began
        row = timed(name, ask, queries, right) | {
            "build, s": built,
            "memory, MB": (psutil.Process().memory_info().rss - before) / 1e6,
        }
        save(str(folder / name.replace(" ", "_")))
        del ask, save
        gc.collect()
        yield row


def in_time(add: Callable[[int, int], None], total: int, until: float) -> None:
    """Add items in parts; `TimeoutError` says how far it came."""
    for start in range(0, total, PART):
        if time.perf_counter() > until:
            raise TimeoutError(f"{start:,} of {total:,} items were in")
        add(start, min(start + PART, total))


def _faiss(items: np.ndarray, factory: str, candidates: int, until: float) -> Peer:
    import faiss

    faiss.omp_set_num_threads(os.cpu_count() or 1)
    index = faiss.index_factory(items.shape[1], factory, faiss.METRIC_INNER_PRODUCT)
    index.train(items[:100_000])
    in_time(lambda start, end: index.add(items[start:end]), len(items), until)
    faiss.omp_set_num_threads(1)

    def ask(query: np.ndarray) -> Sequence[int]:
        near = index.search(query[None], candidates)[1][0]
        chosen: list[int] = near[np.argsort(-(items[near] @ query))[:K]].tolist()
        return chosen

    return ask, lambda path: faiss.write_index(index, path)


def _faiss_flat(items: np.ndarray, until: float) -> Peer:
    return _faiss(items, "Flat", K, until)


def _faiss_sq8(items: np.ndarray, until: float) -> Peer:
    return _faiss(items, "SQ8", 40, until)


def _faiss_hnsw(items: np.ndarray, until: float) -> Peer:
    return _faiss(items, "HNSW32", K, until)


def _hnswlib(items: np.ndarray, until: float) -> Peer:
    import hnswlib

    index: Any = hnswlib.Index("ip", items.shape[1])
    index.init_index(len(items), ef_construction=100, M=16)
    threads = os.cpu_count()
    in_time(lambda start, end: index.add_items(items[start:end], num_threads=threads), len(items), until)
    index.set_ef(64)
    return lambda query: index.knn_query(query[None], K, num_threads=1)[0][0].tolist(), index.save_index


def _usearch(items: np.ndarray, until: float) -> Peer:
    from usearch.index import Index

    index: Any = Index(ndim=items.shape[1], metric="ip", dtype="f32")
    threads = os.cpu_count() or 1
    in_time(lambda start, end: index.add(np.arange(start, end), items[start:end], threads=threads), len(items), until)
    return lambda query: index.search(query, K, threads=1).keys.tolist(), index.save


GRAPHS = {"faiss HNSW": _faiss_hnsw, "hnswlib": _hnswlib, "usearch": _usearch}


def _line(row: dict[str, Any]) -> str:
    if "unfinished" in row:
        return f"{row['name']:<44} {row['unfinished']}"
    parts = [f"{row['name']:<44} processor {row['processor']:7.2f} ms"]
    parts += [f"p50 {row['p50']:7.2f}  p99 {row['p99']:7.2f} ms  recall@10 {row['recall']:.4f}"] if "p50" in row else []
    parts += [f"{key} {row[key]:.1f}" for key in ("build, s", "memory, MB") if key in row]
    return "  ".join(parts + ([f"proven {row['certified']:.3f}"] if "certified" in row else []))


def measure(rows: int, kind: str, options: argparse.Namespace, done: dict[str, Any], keep: Callable[[], None]) -> None:
    """Fill `done` with what is missing there, and keep it after every part."""
    if options.photos:
        items, queries = repeated_photos(options.photos, rows, options.width, options.queries)
    else:
        items, queries = vectors(rows, options.width, options.queries, options.collapsed)
    right = truth(items, queries)
    print(f"\n{rows:,}{kind}", flush=True)
    done["peers"] = [row for row in done.get("peers", []) if "unfinished" not in row]  # they may have more time now
    options.known = {row["name"] for row in done["peers"]}
    with tempfile.TemporaryDirectory() as folder:
        if "ours" not in done:
            mine, facts = ours(items, queries, right, Path(folder) / "index")
            done.update(ours=mine, facts=facts)
            shutil.rmtree(Path(folder) / "index")
            keep()
        print("\n".join(_line(row) for row in (*done["ours"], *done["peers"])), flush=True)
        print("  ".join(f"{name} {value:.2f}" for name, value in done["facts"].items()), flush=True)
        for row in peers(items, queries, right, Path(folder), options):
            done["peers"].append(row)
            keep()
            print(_line(row), flush=True)
    times = {row["name"]: row["processor"] for row in (*done["ours"], *done["peers"]) if "processor" in row}
    base = times["lookalike scan, 1 thread"]
    exact = ("numpy float32", "faiss flat", "faiss SQ8 + rescoring")
    done["ratios"] = {name: base / value for name, value in times.items() if name in exact}
    keep()
    ratios = ", ".join(f"{name} {value:.2f}" for name, value in done["ratios"].items())
    print(f"processor time of one query, one thread, in units of: {ratios}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--collapsed", action="store_true")
    parser.add_argument("--photos", type=Path, nargs="+", metavar="FOLDER", help="instead of drawn vectors")
    parser.add_argument("--no-graphs", action="store_true")
    parser.add_argument("--graph-minutes", type=float, default=15.0, help="the longest that one graph may be built")
    parser.add_argument("--json", type=Path, help="where results are kept, and read again by the next call")
    options = parser.parse_args()
    known = options.json is not None and options.json.is_file()
    results: dict[str, Any] = json.loads(options.json.read_text()) if known else {}
    kind = f" × {options.width}{', collapsed' * options.collapsed}{', photos' * bool(options.photos)}"

    def keep() -> None:
        if options.json is not None:
            options.json.write_text(json.dumps(results, indent=1) + "\n")

    for rows in options.rows:
        measure(rows, kind, options, results.setdefault(f"{rows}{kind}", {}), keep)


if __name__ == "__main__":
    main()
