"""Answers of several stores to one query, as one; and how far they all have come."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from lookalike.progress import Progress
from lookalike.search.items import Answer, Nearest


def merged(answers: Sequence[Answer], k: int, missing: Sequence[str] = ()) -> Answer:
    """The k best hits, ties by id."""
    hits = sorted((hit for answer in answers for hit in answer.hits), key=lambda hit: (-hit.similarity, hit.id))
    certified = all(answer.certified for answer in answers)
    return replace(answers[0], hits=hits[:k], certified=certified, missing=tuple(missing))


def merged_nearest(parts: Sequence[Nearest], k: int, missing: Sequence[str] = ()) -> Nearest:
    """The k nearest items, ties by id."""
    items = sorted((item for part in parts for item in part.items), key=lambda item: (-item.similarity, item.id))
    return replace(parts[0], items=items[:k], certified=all(part.certified for part in parts), missing=tuple(missing))


def summed(progress: Progress | None, count: int) -> list[Progress | None]:
    """For each of several that work at once a callback `(done, total)`; together they tell the sums."""
    if progress is None:
        return [None] * count
    steps, lock = [(0, 0)] * count, threading.Lock()

    def part(number: int, done: int, total: int) -> None:
        with lock:
            steps[number] = done, total
            progress(sum(done for done, _ in steps), sum(total for _, total in steps))

    return [partial(part, number) for number in range(count)]
