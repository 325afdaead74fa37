"""This version of search, server and evaluation beside an earlier one, in turns: the ratio of what they take.

    git worktree add --detach EARLIER REVISION
    python -m benchmarks.versions EARLIER [--only search server evaluation] [--rows 100000] [--rounds 10] [--seconds 3]
                                  [--json FILE]

Each version makes its own index of the same vectors. In every round both do the same work, one after the other, and
each goes first in every second round. Ratios are this version's over the earlier one's: their median over rounds, with
its 95% bootstrap interval. Searches, additions and evaluations (all ranking metrics) are measured in processor seconds
of one thread, answers of the server in its processor seconds per answer and in the median of waiting times.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks import serve

HERE = Path(__file__).parent.parent
PARTS = ("search", "server", "evaluation")
QUERIES, ADDED = 256, 1000
MAKE = (
    "import sys; from pathlib import Path; from benchmarks.serve import make; make(Path(sys.argv[1]), int(sys.argv[2]))"
)
# reads the name of a work from each line and answers with the processor seconds it took
SEARCHER = """
import sys, time
import numpy as np
from lookalike.search import Index
from lookalike.search.items import Item

index, draw = Index.open(sys.argv[1]), np.random.default_rng(0)
queries = draw.standard_normal((int(sys.argv[2]), 128), dtype=np.float32)
queries /= np.linalg.norm(queries, axis=1, keepdims=True)
more = draw.standard_normal((int(sys.argv[3]), 128), dtype=np.float32)
more /= np.linalg.norm(more, axis=1, keepdims=True)
items = [Item(f"more {number}", label="more") for number in range(len(more))]

def one_by_one():
    for query in queries:
        index.search(query)

def together():
    for _ in range(4):
        index.store.search(queries, 10)

def added_and_removed():
    for _ in range(4):
        index.store.put(items, more)
        index.search(queries[0])
        index.remove([item.id for item in items])
        index.search(queries[0])

for line in sys.stdin:
    began = time.process_time()
    globals()[line.strip()]()
    print(time.process_time() - began, flush=True)
"""
SEARCHES = {
    "one_by_one": f"{QUERIES} searches, one by one",
    "together": f"4 times {QUERIES} searches together",
    "added_and_removed": f"4 times {ADDED:,} items added, found, removed",
}
EVALUATOR = """
import json, sys, time
from benchmarks.evaluation import embeddings
from lookalike.evaluation import evaluate

sets = {name: embeddings(*given) for name, given in json.loads(sys.argv[1]).items()}

for line in sys.stdin:
    began = time.process_time()
    evaluate(*sets[line.strip()])
    print(time.process_time() - began, flush=True)
"""
SETS = {  # items, classes, width, noise: see `benchmarks.evaluation`
    "15,000 × 128, 3,000 classes": (15_000, 3_000, 128, 0.7),
    "15,000 × 128, 3,000 classes, random": (15_000, 3_000, 128, None),
    "15,000 × 128, 117 classes, random": (15_000, 117, 128, None),
    "5,924 × 512, 100 classes": (5_924, 100, 512, 3.0),
}
Round = Callable[[], dict[str, float]]


def environment(checkout: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{checkout / 'src'}:{checkout}", "OMP_NUM_THREADS": "1"}


def index_of(checkout: Path, place: Path, rows: int) -> Path:
    """An index that the version in `checkout` has made."""
    command = [sys.executable, "-c", MAKE, str(place), str(rows)]
    subprocess.run(command, env=environment(checkout), cwd=checkout, check=True)
    return place


@contextmanager
def working(checkout: Path, program: str, arguments: Sequence[object], works: Mapping[str, str]) -> Iterator[Round]:
    """One round of every work in a process that answers with the processor seconds it took, by the names of `works`."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, env=environment(checkout), cwd=checkout, stdin=pipe, stdout=pipe, text=True
    ) as process:
        questions, answers = process.stdin, process.stdout
        assert questions is not None
        assert answers is not None

        def one_round() -> dict[str, float]:
            result = {}
            for work, name in works.items():
                print(work, file=questions, flush=True)
                result[name] = float(answers.readline())
            return result

        yield one_round
        questions.close()


@contextmanager
def answering(checkout: Path, index: Path, rows: int, seconds: float) -> Iterator[Round]:
    """One round of clients at a server."""
    loads = {
        "one client, photos": (serve.uploads(), 1),
        "32 clients, photos": (serve.uploads(), 32),
        "32 clients, by id": (serve.by_id(rows), 32),
    }
    with serve.serving(index, 1, environment(checkout)) as server:

        def one_round() -> dict[str, float]:
            result: dict[str, float] = {}
            for name, (requests, clients) in loads.items():
                row = serve.load(name, server, requests, clients, seconds)
                result |= {f"{name}: processor": row["processor"], f"{name}: p50": row["p50"]}
            return result

        yield one_round


def in_turns(now: Round, before: Round, rounds: int) -> dict[str, list[float]]:
    """The ratio of every quantity in each round, after one that does not count."""
    ratios: dict[str, list[float]] = {}
    for number in range(rounds + 1):
        first, second = (now, before) if number % 2 else (before, now)
        one, other = first(), second()
        ours, theirs = (one, other) if number % 2 else (other, one)
        for name in ours if number else ():
            ratios.setdefault(name, []).append(ours[name] / theirs[name])
    return ratios


def summary(ratios: list[float]) -> tuple[float, float, float]:
    """The median, and the interval of it."""
    draws = np.random.default_rng(0).choice(ratios, (10_000, len(ratios)))
    low, high = np.percentile(np.median(draws, axis=1), [2.5, 97.5])
    return float(np.median(ratios)), float(low), float(high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("earlier", type=Path)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    began, checkouts = time.monotonic(), (HERE, options.earlier.resolve())
    results: dict[str, Any] = {}
    with TemporaryDirectory() as place, ExitStack() as stack:

        def beside(part: Callable[[Path], AbstractContextManager[Round]]) -> None:
            now, before = (stack.enter_context(part(each)) for each in checkouts)
            results.update(in_turns(now, before, options.rounds))

        if "evaluation" in options.only:
            beside(lambda each: working(each, EVALUATOR, [json.dumps(SETS)], {name: name for name in SETS}))
        if {"search", "server"} & set(options.only):
            indexes = {
                each: index_of(each, Path(place) / f"{number}.index", options.rows)
                for number, each in enumerate(checkouts)
            }
        if "search" in options.only:
            beside(lambda each: working(each, SEARCHER, (indexes[each], QUERIES, ADDED), SEARCHES))
        if "server" in options.only:
            beside(lambda each: answering(each, indexes[each], options.rows, options.seconds))
    for name, ratios in results.items():
        middle, low, high = summary(ratios)
        print(f"{name:<46}{middle:6.3f} [{low:.3f}, {high:.3f}]")
    print(f"{options.rounds} rounds, {time.monotonic() - began:.0f} s", file=sys.stderr)
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
