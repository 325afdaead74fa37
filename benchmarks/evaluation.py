"""Evaluation against pytorch-metric-learning 2.9.0 (with faiss) and against the bare product of all pairs.

    python -m benchmarks.evaluation [--json FILE] [--only large small gallery growth shapes] [--threads N]
                                    [--huge 60000]

Every ratio comes from one run on the same data with the same threads. "product" is the loop
`for i in range(0, n, 2048): X[i:i+2048] @ X.T`, which ranks nothing; "ours" gives all ranking metrics at all usual K.
Memory is the growth of the resident set while running, sampled every 10 ms. "cpu" is the ratio of processor seconds,
which other work on the machine distorts less than the clock. `--huge`: rows of 2 and 10 classes among the shapes.
"""

import argparse
import itertools
import json
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import torch
from torch import Tensor

from lookalike.evaluation import evaluate, neighbours

SOP = (60_502, 11_316)  # test images and classes of Stanford Online Products
CUB = (5_924, 100)
Row = dict[str, Any]


def embeddings(rows: int, classes: int, width: int, noise: float | None, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Uneven classes of at least two; `noise=None`: random embeddings, in which classes mean nothing."""
    generator = torch.Generator().manual_seed(seed)
    spread = torch.randint(classes, (rows - 2 * classes,), generator=generator)
    labels = torch.cat((torch.arange(classes), torch.arange(classes), spread))
    labels = labels[torch.randperm(rows, generator=generator)]
    vectors = torch.randn(rows, width, generator=generator)
    if noise is not None:
        vectors = torch.randn(classes, width, generator=generator)[labels] + noise * vectors
    return torch.nn.functional.normalize(vectors, dim=1), labels


class Peak:
    """Growth of the resident set in megabytes."""

    def __enter__(self) -> "Peak":
        self.process = psutil.Process()
        self.before = self.highest = self.process.memory_info().rss
        self.running = True
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def watch(self) -> None:
        while self.running:
            self.highest = max(self.highest, self.process.memory_info().rss)
            time.sleep(0.01)

    def __exit__(self, *_: object) -> None:
        self.running = False
        self.thread.join()
        self.megabytes = (self.highest - self.before) / 2**20


def timed(row: Row, name: str, action: Callable[[], Any], repeats: int = 1) -> None:
    """Notes the best time (clock and processor) in seconds, and the largest growth of memory in megabytes."""
    seconds, processor, megabytes = float("inf"), float("inf"), 0.0
    for _ in range(repeats):
        with Peak() as peak:
            start, used = time.perf_counter(), time.process_time()
            action()
            seconds = min(seconds, time.perf_counter() - start)
            processor = min(processor, time.process_time() - used)
        megabytes = max(megabytes, peak.megabytes)
    row |= {f"{name}_s": seconds, f"{name}_cpu": processor, f"{name}_mb": megabytes}


def product(vectors: Tensor) -> None:
    for i in range(0, len(vectors), 2048):
        vectors[i : i + 2048] @ vectors.T


def peer(vectors: Tensor, labels: Tensor, k: str | int) -> None:
    from pytorch_metric_learning.utils.accuracy_calculator import AccuracyCalculator

    include = ("precision_at_1", "r_precision", "mean_average_precision_at_r")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        AccuracyCalculator(include=include, k=k).get_accuracy(vectors, labels)


def case(name: str, sizes: tuple[int, int], width: int, noise: float | None, peers: bool, repeats: int) -> Row:
    vectors, labels = embeddings(*sizes, width, noise)
    row: Row = {"case": name, "rows": sizes[0], "classes": sizes[1], "width": width}
    timed(row, "ours", lambda: evaluate(vectors, labels), repeats)
    timed(row, "product", lambda: product(vectors), repeats)
    relate(row)
    if peers:
        for label, k in (("peer", "max_bin_count"), ("peer_1001", 1001)):
            timed(row, label, lambda k=k: peer(vectors, labels, k))  # type: ignore[misc]
            row[f"faster_than_{label}"] = row[f"{label}_s"] / row["ours_s"]
    return row


def relate(row: Row) -> None:
    row["of_product"] = row["ours_s"] / row["product_s"]
    row["cpu_of_product"] = row["ours_cpu"] / row["product_cpu"]


def large() -> Iterator[Row]:
    for width in (512, 128):
        yield case(f"SOP-sized, trained-like, {width}-D", SOP, width, 0.7 if width == 128 else 1.0, True, 2)
        yield case(f"SOP-sized, random, {width}-D", SOP, width, None, False, 2)


def small() -> Iterator[Row]:
    yield case("CUB-sized, trained-like, 512-D", CUB, 512, 3.0, True, 3)
    yield case("CUB-sized, random, 512-D", CUB, 512, None, False, 3)


def gallery(queries: int = 2048, items: int = 1_000_000, width: int = 64) -> Iterator[Row]:
    """A slice of 100,000 queries × 1,000,000 items, and what the whole would take."""
    vectors, labels = embeddings(items + queries, 100_000, width, 0.7)
    left, right = vectors[:queries].clone(), vectors[queries:].clone()

    def ours() -> None:
        evaluate(left, labels[:queries], gallery=right, gallery_labels=labels[queries:])

    def bare() -> None:
        for start in range(0, queries, 64):
            left[start : start + 64] @ right.T

    part: Row = {}
    timed(part, "ours", lambda: evaluate(left[:1024], labels[:1024], gallery=right, gallery_labels=labels[queries:]))
    row: Row = {"case": f"{queries:,} queries × {items:,}, {width}-D", "rows": queries, "width": width}
    timed(row, "ours", ours)
    timed(row, "product", bare)
    relate(row)
    per_query = (row["ours_s"] - part["ours_s"]) / (queries - 1024)
    row["whole_s"] = row["ours_s"] + per_query * (100_000 - queries)
    yield row


def growth() -> Iterator[Row]:
    for rows in (7_500, 15_000, 30_000):
        yield case(f"n = {rows:,}", (rows, rows // 5), 128, 0.7, False, 1)
    for width in (64, 256, 1024):
        yield case(f"d = {width}", (15_000, 3_000), width, 0.7, False, 1)
    for members in (2, 8, 32, 128, 1024, 7_500):
        yield case(f"{members:,} per class, random", (15_000, 15_000 // members), 128, None, False, 1)


def shapes(huge: Sequence[int] = (60_000,)) -> Iterator[Row]:
    """Few huge classes, few ranks of them, embeddings that float32 does not tell apart, and a matrix of relevance."""
    for width in (32, 128):
        vectors, labels = embeddings(10_000, 2, width, None)
        row: Row = {"case": f"precision@1, 2 classes, {width}-D", "rows": 10_000, "classes": 2, "width": width}
        timed(row, "ours", lambda x=vectors, y=labels: evaluate(x, y, metrics="precision@1"), 2)  # type: ignore[misc]
        timed(row, "product", lambda x=vectors: product(x), 2)  # type: ignore[misc]
        timed(row, "search", lambda x=vectors: neighbours(x, None, 1), 2)  # type: ignore[misc]
        relate(row)
        yield row
    for size, classes in itertools.product(huge, (2, 10)):
        yield case(f"{size:,} rows, {classes} classes, all metrics", (size, classes), 128, None, False, 1)
    draw = np.random.default_rng(0)
    vectors, labels = embeddings(10_000, 100, 32, 1.0)
    tight = torch.nn.functional.normalize(torch.ones(32) + 1e-3 * vectors)
    row = {"case": "spread 1e-3, all metrics", "rows": 10_000, "classes": 100, "width": 32}
    timed(row, "ours", lambda: evaluate(tight, labels))
    timed(row, "product", lambda: product(tight))
    relate(row)
    yield row
    ignore = draw.random((10_000, 10_000)) < 0.1
    for share in (0.01, 0.5):
        relevance = draw.random((10_000, 10_000)) < share
        row = {"case": f"relevance {share:.0%} + ignore 10%", "rows": 10_000, "width": 32}
        timed(row, "ours", lambda r=relevance: evaluate(vectors, relevance=r, ignore=ignore))  # type: ignore[misc]
        timed(row, "product", lambda: product(vectors))
        relate(row)
        yield row


PARTS = {"small": small, "large": large, "gallery": gallery, "growth": growth, "shapes": shapes}
SHOWN = (
    *("ours_s", "product_s", "of_product", "cpu_of_product", "ours_cpu", "search_cpu"),
    *("peer_s", "faster_than_peer", "peer_1001_s", "faster_than_peer_1001"),
    *("ours_mb", "product_mb", "peer_mb", "peer_1001_mb", "whole_s"),
)


def shown(row: Row) -> str:
    cells = [f"{key} {row[key]:.0f}" if key.endswith("_mb") else f"{key} {row[key]:.2f}" for key in SHOWN if key in row]
    return f"{row['case']:<36} " + "  ".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--huge", type=int, nargs="+", default=[60_000], metavar="ROWS")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    evaluate(*embeddings(400, 99, 8, 1.0))  # compiles
    evaluate(*embeddings(400, 5, 8, 1.0))
    evaluate(*embeddings(1200, 2, 8, 1.0))
    rows = []
    print(f"{torch.get_num_threads()} threads, torch {torch.__version__}", flush=True)
    for part in options.only:
        for row in shapes(options.huge) if part == "shapes" else PARTS[part]():
            rows.append(row)
            print(shown(row), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps({"threads": torch.get_num_threads(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
