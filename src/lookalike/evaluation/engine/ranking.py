"""Exact ranks by counting [architecture ranking]: the rank of a relevant item is 1 + the number of items above it.

Every score block is computed once, compared with the scores of the queries' own relevant items, and dropped; where
queries and gallery are the same set, only the upper triangle of blocks is computed and each serves rows and columns.

The relevant scores are float64 sums. A block score (float32) within rounding of the edge at which it starts to count as
tied or above is computed again in float64, so ranks do not depend on block size, threads or hardware: they are those of
the float64 scores of the vectors as they were given. Where a block holds too many such scores, the whole block is
computed again in float64. Nothing is sorted but each query's own relevant scores; classes that are a good part of the
gallery are ranked by `whole_rows` instead.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Lock
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from lookalike.evaluation.engine.panel import BLOCKS, Blocks, Panel, partition, waves
from lookalike.evaluation.engine.question import RankingTask
from lookalike.evaluation.engine.ranks import RelevantRanks
from lookalike.evaluation.engine.space import Space
from lookalike.evaluation.engine.whole_rows import RowSorter, sorted_ahead, suits
from lookalike.progress import Progress

FLOOR = 1e-12  # float64 sums of equal terms in another order differ by less; a tolerance of 0 means this
Task = tuple[int, slice, int | None]


@runtime_checkable
class Counts(Protocol):
    """Counting on one kind of device: a panel of thresholds, and one block of columns counted against it."""

    def panel(self, rows: slice) -> Panel: ...

    def count(self, panel: Panel, columns: slice, other: Panel | None, buffer: Tensor) -> None: ...


@contextmanager
def workers(device: torch.device) -> Iterator[tuple[ThreadPoolExecutor, int]]:
    """As many threads as torch has, each with a single-threaded product of full precision; settings are restored after.

    The number of threads of a product is a setting of the calling thread, so each worker sets it.
    """
    threads, precision = torch.get_num_threads(), torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        if device.type == "cpu":
            with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
                yield pool, threads
        else:
            with ThreadPoolExecutor(1) as pool:
                yield pool, 1
    finally:
        torch.set_num_threads(threads)
        torch.set_float32_matmul_precision(precision)


def outside(question: RankingTask, start: int, stop: int, height: int, blocks: Blocks) -> Iterator[slice]:
    """The gallery without positions start … stop − 1, in blocks."""
    step = max(blocks.rows, blocks.area // (-(-height // 8) * 8))
    for begin, end in ((0, start), (stop, len(question.gallery))):
        for left in range(begin, end, step):
            yield slice(left, min(left + step, end))


def plan(question: RankingTask, rows: list[slice], blocks: Blocks) -> list[Task]:
    """Blocks (panel, gallery columns, panel that these columns are) in which each panel meets the whole gallery."""
    tasks: list[Task] = []
    shift = question.offset
    begin, end = (rows[0].start + shift, rows[-1].stop + shift) if question.symmetric else (0, 0)
    for number, piece in enumerate(rows):
        height = piece.stop - piece.start
        tasks += [(number, columns, None) for columns in outside(question, begin, end, height, blocks)]
        if question.symmetric:
            for other in range(number, len(rows)):
                columns = slice(rows[other].start + shift, rows[other].stop + shift)
                tasks.append((number, columns, other if other > number else None))
    return tasks


def rank(
    question: RankingTask,
    queries: Space,
    gallery: Space,
    tolerance: float = 0.0,
    most: int | None = None,
    progress: Progress | None = None,
    blocks: Blocks = BLOCKS,
) -> Iterator[RelevantRanks]:
    """The ranks of all queries with a relevant item, panel by panel; of their `most` best relevant items."""
    if suits(question, gallery.vectors.device, most, blocks):
        yield from rank_rows(RowSorter(question, queries, gallery, max(tolerance, FLOOR)), progress, blocks)
        return
    counter = counter_for(question, queries, gallery, max(tolerance, FLOOR), most, blocks)
    groups = waves(question, partition(question, most, blocks), most, blocks)
    plans = [plan(question, rows, blocks) for rows in groups if rows]
    total, done, lock = sum(len(tasks) for tasks in plans), 0, Lock()
    buffers: SimpleQueue[Tensor] = SimpleQueue()
    device = gallery.vectors.device

    def work(panels: list[Panel], task: Task) -> None:
        nonlocal done
        buffer = buffers.get()
        try:
            counter.count(panels[task[0]], task[1], None if task[2] is None else panels[task[2]], buffer)
        finally:
            buffers.put(buffer)
        with lock:
            done += 1
            if progress is not None:
                progress(done, total)

    with workers(device) as (pool, threads):
        with torch.inference_mode(False):  # the caller may be in it, the threads that write here never are
            for _ in range(threads):
                buffers.put(torch.empty(blocks.area, device=device))
        for rows, tasks in zip(groups, plans, strict=False):
            panels = list(pool.map(counter.panel, rows))
            for _ in pool.map(lambda task, panels=panels: work(panels, task), tasks):
                pass
            yield from (panel.ranks(question) for panel in panels)


def rank_rows(sorter: RowSorter, progress: Progress | None, blocks: Blocks) -> Iterator[RelevantRanks]:
    """The ranks of huge classes, some rows at a time."""
    total = len(sorter.pieces())
    with workers(sorter.gallery.vectors.device) as (pool, threads):
        for number, parts in enumerate(sorted_ahead(sorter, pool, threads, blocks.entries), start=1):
            if progress is not None:
                progress(number, total)
            yield from parts


def counter_for(
    question: RankingTask, queries: Space, gallery: Space, tolerance: float, most: int | None, blocks: Blocks
) -> Counts:
    """Compiled loops on the CPU, torch operations elsewhere."""
    if gallery.vectors.device.type == "cpu" and blocks.compiled:
        from lookalike.evaluation.engine.counting import Counter

        return Counter(question, queries, gallery, tolerance, most, blocks)
    from lookalike.evaluation.engine.device import DeviceCounter

    return DeviceCounter(question, queries, gallery, tolerance, most, blocks)
