"""Answers of several stores to one query, as one."""

from collections.abc import Sequence
from dataclasses import replace

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
