"""What several stores keep beside items: documents in every one, marks and log in the first, generations of all."""

from collections.abc import Mapping, Sequence

from lookalike.search.items import Identity, Item, Mark, Vectors
from lookalike.search.log import LogEntry
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
    """See `Log`."""

    def __init__(self, first: Shard) -> None:
        self._first = first

    def append(self, entry: LogEntry) -> int:
        return self._first.ask(lambda store: store.log.append(entry))

    def entries(
        self, actions: Sequence[str] = (), subject: str | None = None, last: int | None = None
    ) -> list[LogEntry]:
        return self._first.ask(lambda store: store.log.entries(actions, subject, last))


class ShardedGenerations:
    """See `Generations`."""

    def __init__(self, shards: FanOut) -> None:
        self._ask = shards

    def begin(self, identity: Identity) -> Identity:
        return self._ask.all(lambda store: store.generations.begin(identity))[0]

    def upcoming(self) -> Identity | None:
        return self._ask.any(lambda store: store.generations.upcoming())

    def unfilled(self, generation: int, count: int, after: str = "") -> list[Item]:
        parts = self._ask.all(lambda store: store.generations.unfilled(generation, count, after))
        return sorted((item for part in parts for item in part), key=lambda item: item.id)[:count]

    def fill(self, generation: int, ids: Sequence[str], vectors: Vectors) -> None:
        self._ask.divided(
            ids, lambda store, own: store.generations.fill(generation, [ids[one] for one in own], vectors[own])
        )

    def switch(self, generation: int) -> int:
        missing = sum(len(part) for part in self._ask.all(lambda store: store.generations.unfilled(generation, EVERY)))
        if missing:
            return missing
        for shard in reversed(self._ask.shards):  # the first one speaks for all: it goes last
            missing += shard.ask(lambda store: store.generations.switch(generation))
            if missing:
                break
        return missing
