"""What several stores keep beside items: documents in every one, marks and log in the first, generations of all."""

from collections.abc import Mapping, Sequence

import numpy as np

from lookalike.search.items import Identity, Item, Mark, Vectors
from lookalike.search.log import LogEntry
from lookalike.search.stores import StorageError, Store
from lookalike.search.stores.sharded.shards import FanOut, Shard

EVERY = 1 << 40  # more items or values than there are


class ShardedDocuments:
    """See `Documents`."""

    def __init__(self, shards: FanOut) -> None:
        self._ask = shards

    def read(self, name: str) -> str | None:
        return self._ask.any(lambda store: store.documents.read(name))

    def write(self, name: str, text: str | None) -> None:
        self._ask.all(lambda store: store.documents.write(name, text))

    def model(self, fingerprint: str) -> dict[str, bytes]:
        return self._ask.any(lambda store: store.documents.model(fingerprint))

    def keep_model(self, fingerprint: str, files: Mapping[str, bytes]) -> None:
        self._ask.all(lambda store: store.documents.keep_model(fingerprint, files))

    def pictures(self, ids: Sequence[str]) -> dict[str, bytes]:
        parts = self._ask.divided(ids, lambda store, own: store.documents.pictures([ids[one] for one in own]))
        return {one: content for _, part in parts for one, content in part.items()}


class ShardedMarks:
    """See `Marks`."""

    def __init__(self, first: Shard) -> None:
        self._first = first

    def add(self, mark: Mark, picture: bytes | None = None) -> int:
        return self._first.ask(lambda store: store.marks.add(mark, picture))

    def remove(self, number: int) -> bool:
        return self._first.ask(lambda store: store.marks.remove(number))

    def every(self) -> list[Mark]:
        return self._first.ask(lambda store: store.marks.every())

    def of(self, query: str) -> list[Mark]:
        return self._first.ask(lambda store: store.marks.of(query))

    def count(self) -> int:
        return self._first.ask(lambda store: store.marks.count())

    def picture(self, query: str) -> bytes | None:
        return self._first.ask(lambda store: store.marks.picture(query))


class ShardedLog:
    """See `ActionLog`."""

    def __init__(self, first: Shard) -> None:
        self._first = first

    def append(self, *entries: LogEntry) -> None:
        self._first.ask(lambda store: store.log.append(*entries))

    def entries(
        self, actions: Sequence[str] = (), subject: str | None = None, last: int | None = None
    ) -> list[LogEntry]:
        return self._first.ask(lambda store: store.log.entries(actions, subject, last))


class ShardedGenerations:
    """See `Generations`."""

    def __init__(self, shards: FanOut) -> None:
        self._ask = shards

    def begin(self, identity: Identity) -> Identity:
        check_one_generation(self._ask)
        return self._ask.all(lambda store: store.generations.begin(identity))[0]

    def upcoming(self) -> Identity | None:
        """That of all shards that have not switched to it yet; None where a process was stopped before all began."""
        first = self._ask.any(lambda store: store.generations.upcoming())
        every = self._ask.all(lambda store: (store.identity, store.generations.upcoming())) if first else []
        return first if all(first in shard for shard in every) else None

    def unfilled(self, generation: int, count: int, after: str = "") -> list[Item]:
        parts = self._ask.all(lambda store: store.generations.unfilled(generation, count, after))
        return sorted((item for part in parts for item in part), key=lambda item: item.id)[:count]

    def fill(self, new: Identity, items: Sequence[Item], vectors: Vectors, mapped: bool = False) -> None:
        self._ask.divided(
            [item.id for item in items],
            lambda store, own: store.generations.fill(new, [items[one] for one in own], vectors[own], mapped),
        )

    def filled(self, new: Identity) -> tuple[list[str], Vectors]:
        """Of the shards that have not switched to it yet: those have old vectors, too."""

        def part(store: Store) -> tuple[list[str], Vectors]:
            switched = store.identity == new
            return ([], np.empty((0, new.dim), np.float32)) if switched else store.generations.filled(new)

        parts = self._ask.all(part)
        ids = [one for own, _ in parts for one in own]
        order = sorted(range(len(ids)), key=ids.__getitem__)
        return [ids[place] for place in order], np.concatenate([vectors for _, vectors in parts])[order]

    def switch(self, generation: int) -> int:
        missing = sum(len(part) for part in self._ask.all(lambda store: store.generations.unfilled(generation, EVERY)))
        if missing:
            return missing
        for shard in reversed(self._ask.shards):  # the first one speaks for all: it goes last
            missing += shard.ask(lambda store: store.generations.switch(generation))
            if missing:
                break
        return missing

    def mapped(self, count: int, after: str = "") -> list[Item]:
        parts = self._ask.all(lambda store: store.generations.mapped(count, after))
        return sorted((item for part in parts for item in part), key=lambda item: item.id)[:count]

    def mapped_count(self) -> int:
        return sum(self._ask.all(lambda store: store.generations.mapped_count()))

    def settle(self, generation: int, ids: Sequence[str], vectors: Vectors) -> None:
        self._ask.divided(
            ids, lambda store, own: store.generations.settle(generation, [ids[one] for one in own], vectors[own])
        )


def check_one_generation(shards: FanOut) -> None:
    """Refuse what would mix vectors of two models: some shards have switched, and a process was stopped then."""
    if len(set(shards.all(lambda store: store.identity.generation))) > 1:
        raise between_generations()


def between_generations() -> StorageError:
    again = "lookalike upgrade, or lookalike index --new-generation"
    return StorageError(f"the shards are between two generations: let {again} finish")
