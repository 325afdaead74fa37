"""Several stores as one: items are divided by a digest of their ids, every shard is asked at once, answers are merged.

A shard that does not answer is named in the answer, or the search is refused with `complete`; whatever else needs all
shards is refused in one line. Facts and models are kept in every shard, marks in the first. A change is whole within
each shard; a new generation is switched to shard by shard, and answers of two generations are never mixed.
"""

import heapq
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TypeVar, cast

import numpy as np

from lookalike.errors import check
from lookalike.progress import Progress
from lookalike.search.filters import Filter, Kind
from lookalike.search.items import Answer, Identity, Item, Nearest, Value, Vectors
from lookalike.search.stores import Approximating, Column, Forgotten, StorageError, Store, Summary
from lookalike.search.stores.fields import check_batch, kinds_of
from lookalike.search.stores.sharded.merging import merged, merged_nearest, summed
from lookalike.search.stores.sharded.parts import (
    EVERY,
    ShardedDocuments,
    ShardedGenerations,
    ShardedLog,
    ShardedMarks,
    between_generations,
    check_one_generation,
)
from lookalike.search.stores.sharded.shards import REST, FanOut, Shard

BLOCK = 5_000
ATTEMPTS = 5  # to find all shards in one generation
Found = TypeVar("Found", Answer, Nearest)


class ShardedStore:
    """A store of stores; see `Store`."""

    def __init__(self, openers: Sequence[Callable[[], Store]], complete: bool = False, rest: float = REST) -> None:
        names = [f"shard {number} of {len(openers)}" for number in range(1, len(openers) + 1)]
        self.shards = [Shard(name, open_, rest) for name, open_ in zip(names, openers, strict=True)]
        self.complete, self._ask = complete, FanOut(self.shards)
        self.documents, self.marks = ShardedDocuments(self._ask), ShardedMarks(self.shards[0])
        self.log = ShardedLog(self.shards[0])
        self.generations = ShardedGenerations(self._ask)
        replies = self._ask.tried(lambda store, _: store.identity)
        identities = [identity for identity in replies if isinstance(identity, Identity)]
        if not identities:
            raise StorageError(f"none of the shards answers; {replies[0]}")
        generations = {identity.generation for identity in identities}
        check(len(set(identities)) == len(generations), "the shards hold vectors of different models: not one index")

    def steady(self) -> AbstractContextManager[object]:
        return nullcontext()

    @property
    def identity(self) -> Identity:
        return self._ask.any(lambda store: store.identity)

    def put(
        self,
        items: Sequence[Item],
        vectors: Vectors,
        pictures: Mapping[str, bytes] | None = None,
        generation: int | None = None,
    ) -> None:
        check_batch(items)
        check(len(items) == len(vectors), f"{len(vectors)} vectors for {len(items)} items")
        self._know(items)
        now = time.time()
        items = [replace(item, added=now) if item.added is None else item for item in items]  # one time for all shards

        def part(store: Store, places: list[int]) -> None:
            some = [items[place] for place in places]
            own = {item.id: pictures[item.id] for item in some if pictures and item.id in pictures}
            store.put(some, vectors[places], own, generation)

        self._ask.divided([item.id for item in items], part)

    def _know(self, items: Sequence[Item]) -> None:
        """A column that is new is so in every shard, before any item; a value of another kind is in none."""
        new = kinds_of(items, {name: ("", kind) for name, kind in self.columns().items()})
        if new:
            self.know(new)

    def know(self, kinds: Mapping[str, Kind]) -> None:
        self._ask.all(lambda store: store.know(kinds))

    def remove(self, ids: Sequence[str]) -> int:
        return sum(
            count for _, count in self._ask.divided(ids, lambda store, own: store.remove([ids[one] for one in own]))
        )

    def forget(self, ids: Sequence[str]) -> Forgotten:
        parts = self._ask.all(lambda store: store.forget(ids))  # marks of an item are in the first shard
        first, names = parts[0], [shard.name for shard in self.shards]
        rewritten = [f"{name}: {one}" for name, part in zip(names, parts, strict=True) for one in part.rewritten]
        return Forgotten(sum(part.items for part in parts), first.marks, rewritten, first.beyond)

    def search(self, queries: Vectors, k: int, where: Filter = (), leave_out: Sequence[str] = ()) -> list[Answer]:
        parts, missing = self._replies(lambda store, own: store.search(queries, k, where, own), leave_out)
        return [merged(each, k, missing) for each in zip(*parts, strict=True)]

    def nearest(
        self, queries: Vectors, k: int, column: str, where: Filter = (), leave_out: Sequence[str] = ()
    ) -> list[Nearest]:
        parts, missing = self._replies(lambda store, own: store.nearest(queries, k, column, where, own), leave_out)
        return [merged_nearest(each, k, missing) for each in zip(*parts, strict=True)]

    def _replies(
        self, work: Callable[[Store, list[str]], list[Found]], leave_out: Sequence[str]
    ) -> tuple[list[list[Found]], list[str]]:
        """What shards of one generation find, each without its own of the ids to leave out; those that are down."""
        own = [[leave_out[place] for place in places] for places in self._ask.parts(leave_out)]
        for _ in range(ATTEMPTS):
            replies = self._ask.tried(lambda store, place: work(store, own[place]))
            found = [reply for reply in replies if not isinstance(reply, StorageError)]
            pairs = zip(self.shards, replies, strict=True)
            problems = {shard.name: reply for shard, reply in pairs if isinstance(reply, StorageError)}
            if problems and (self.complete or not found):
                raise next(iter(problems.values()))
            if len({one.generation for part in found for one in part}) <= 1:
                return found, list(problems)
            time.sleep(0.1)  # a switch is under way
        raise between_generations()

    def vectors(self, ids: Sequence[str]) -> Vectors:
        result = np.empty((len(ids), self.identity.dim), np.float32)
        for places, rows in self._ask.divided(ids, lambda store, own: store.vectors([ids[one] for one in own])):
            result[places] = rows
        return result

    def items(self, ids: Sequence[str]) -> list[Item]:
        parts = self._ask.divided(ids, lambda store, own: store.items([ids[one] for one in own]))
        by_id = {item.id: item for _, items in parts for item in items}
        return [by_id[one] for one in dict.fromkeys(ids) if one in by_id]

    def at_paths(self, paths: Sequence[str]) -> dict[str, Item]:
        return {
            path: item for part in self._ask.all(lambda store: store.at_paths(paths)) for path, item in part.items()
        }

    def scan(self, after: str | None = None, where: Filter = ()) -> Iterator[tuple[list[Item], Vectors]]:
        def rows(shard: Shard) -> Iterator[tuple[Item, np.ndarray]]:
            for items, vectors in shard.each(lambda store: store.scan(after, where)):
                yield from zip(items, vectors, strict=True)

        check_one_generation(self._ask)
        every = heapq.merge(*map(rows, self.shards), key=lambda row: row[0].id)
        while block := list(islice(every, BLOCK)):
            yield [item for item, _ in block], np.stack([vector for _, vector in block])

    def sample(self, count: int) -> list[Item]:
        every = [item for part in self._ask.all(lambda store: store.sample(count)) for item in part]
        return random.sample(every, min(count, len(every)))

    def listed(self, where: Filter = (), after: str = "") -> Iterator[Item]:
        parts = [shard.each(lambda store: store.listed(where, after)) for shard in self.shards]
        return heapq.merge(*parts, key=lambda item: item.id)

    def count(self, where: Filter = ()) -> int:
        return sum(self._ask.all(lambda store: store.count(where)))

    def version(self) -> str:
        return ".".join(
            "?" if isinstance(one, StorageError) else one for one in self._ask.tried(lambda store, _: store.version())
        )

    def first_of(self, column: str, values: Sequence[Value]) -> dict[Value, Item]:
        result: dict[Value, Item] = {}
        for part in self._ask.all(lambda store: store.first_of(column, values)):
            for value, item in part.items():
                if value not in result or _age(item) < _age(result[value]):
                    result[value] = item
        return result

    def summary(self, columns: Sequence[str], values: int = 0, newest: int = 0) -> Summary:
        parts = self._ask.all(lambda store: store.summary(columns, EVERY, newest))
        merged = {name: _merged([part.columns[name] for part in parts], values) for name in columns}
        every = [item for part in parts for item in part.newest]
        return Summary(merged, sorted(every, key=lambda item: -(item.added or 0.0))[:newest])

    def check(self) -> list[str]:
        faults = zip(self.shards, self._ask.all(lambda store: store.check()), strict=True)
        return [f"{shard.name}: {line}" for shard, lines in faults for line in lines]

    def compact(self) -> None:
        self._ask.all(lambda store: store.compact())

    def backup(self, file: Path) -> None:
        from lookalike.search.stores.copying import into_file

        into_file(self, file)

    def columns(self) -> Mapping[str, Kind]:
        return self._ask.any(lambda store: store.columns())

    def approximate(self, on: bool, progress: Progress | None = None) -> None:
        """See `Approximating`."""
        parts = summed(progress, len(self.shards))
        self._ask.each(lambda store, place: cast(Approximating, store).approximate(on, parts[place]))

    def describe(self) -> dict[str, str]:
        lines: dict[str, list[str]] = {}
        for shard, reply in zip(self.shards, self._ask.tried(lambda store, _: store.describe()), strict=True):
            words = {"down": str(reply)} if isinstance(reply, StorageError) else reply
            for what, text in words.items():
                lines.setdefault(what, []).append(text if what == "down" else f"{shard.name}: {text}")
        return {what: "; ".join(texts) for what, texts in lines.items()}

    def close(self) -> None:
        self._ask.close()


def _age(item: Item) -> tuple[float, str]:
    return item.added or 0.0, item.id


def _merged(parts: Sequence[Column], values: int) -> Column:
    """What a column holds in all shards."""
    counts: Counter[Value] = Counter()
    for part in parts:
        counts.update(dict(part.counts))
    ends = [end for part in parts for end in (part.least, part.most) if end is not None]
    first = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:values]
    return Column(parts[0].kind, len(counts), first, min(ends, default=None), max(ends, default=None))
