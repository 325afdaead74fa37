"""Answers of several stores to one query, as one; and how far they all have come."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from lookalike.search.items import Answer, Hit, Value


def merged(answers: Sequence[Answer], k: int, group: str | None, missing: Sequence[str] = ()) -> Answer:
    """The k best hits, ties by id; with `group` the best of each value."""
    hits = sorted((hit for answer in answers for hit in answer.hits), key=lambda hit: (-hit.similarity, hit.id))
    if group is not None:
        first: dict[Value, Hit] = {}
        for hit in hits:
            first.setdefault(value_of(hit, group), hit)
        hits = list(first.values())
    certified = all(answer.certified for answer in answers)
    return replace(answers[0], hits=hits[:k], certified=certified, missing=tuple(missing))


def value_of(hit: Hit, column: str) -> Value:
    """What a column says of a hit."""
    if column in ("id", "path", "label", "root", "added"):
        value: Value = getattr(hit.item, column)
        return value
    return hit.item.columns.get(column)


def summed(progress: Callable[[int, int], None] | None, count: int) -> list[Callable[[int, int], None] | None]:
    """For each of several that work at once a callback `(done, total)`; together they tell the sums."""
    if progress is None:
        return [None] * count
    steps, lock = [(0, 0)] * count, threading.Lock()

    def part(number: int, done: int, total: int) -> None:
        with lock:
            steps[number] = done, total
            progress(sum(done for done, _ in steps), sum(total for _, total in steps))

    return [partial(part, number) for number in range(count)]
