"""The stores that are one index: which items belong to each, and how all of them are asked at once."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import blake2b
from typing import Any, TypeVar

from lookalike.search.stores import StorageError, Store

REST = 5.0  # seconds in which a shard that did not answer is not asked again
Result = TypeVar("Result")


class Shard:
    """One of several stores, opened when it is first needed; one that is down is left alone for `rest` seconds."""

    def __init__(
        self, name: str, open_: Callable[[], Store], rest: float = REST, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.name, self._open, self._rest, self._clock = name, open_, rest, clock
        self._store: Store | None = None
        self._lock = threading.Lock()
        self._problem, self._until = "", 0.0

    def ask(self, work: Callable[[Store], Result]) -> Result:
        if self._clock() < self._until:
            raise StorageError(self._problem)
        try:
            result = work(self.store)
        except StorageError as error:
            self._problem, self._until = f"{self.name}: {error}", self._clock() + self._rest
            raise StorageError(self._problem) from error
        self._until = 0.0
        return result

    def each(self, blocks: Callable[[Store], Iterator[Result]]) -> Iterator[Result]:
        """What a store gives one after the other."""
        rest = self.ask(blocks)
        while (one := self.ask(lambda _: next(rest, None))) is not None:
            yield one

    @property
    def store(self) -> Any:  # a Store: to check that it is one, tests would ask a server that is down
        with self._lock:
            if self._store is None:
                self._store = self._open()
            return self._store

    def close(self) -> None:
        if self._store is not None:
            self._store.close()


class FanOut:
    """Threads that ask the shards of one index, each in its own."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self.shards = shards
        self._threads = ThreadPoolExecutor(len(shards), "shard")

    def all(self, work: Callable[[Store], Result]) -> list[Result]:
        """What every shard replies; one that does not answer is an error."""
        return list(self._threads.map(lambda shard: shard.ask(work), self.shards))

    def tried(self, work: Callable[[Store, int], Result]) -> list[Result | StorageError]:
        """What every shard replies, asked with its place, or its problem."""

        def one(place: int) -> Result | StorageError:
            try:
                return self.shards[place].ask(lambda store: work(store, place))
            except StorageError as error:
                return error

        return list(self._threads.map(one, range(len(self.shards))))

    def any(self, work: Callable[[Store], Result]) -> Result:
        """What the first shard that answers replies."""
        for shard in self.shards[:-1]:
            try:
                return shard.ask(work)
            except StorageError:
                continue
        return self.shards[-1].ask(work)

    def parts(self, ids: Sequence[str]) -> list[list[int]]:
        """The places of ids that belong to each shard."""
        parts: list[list[int]] = [[] for _ in self.shards]
        for place, id_ in enumerate(ids):
            parts[shard_of(id_, len(self.shards))].append(place)
        return parts

    def divided(self, ids: Sequence[str], work: Callable[[Store, list[int]], Result]) -> list[tuple[list[int], Result]]:
        """Work on the shards that hold these ids, each with the places of its own."""
        parts = [(shard, places) for shard, places in zip(self.shards, self.parts(ids), strict=True) if places]
        results = self._threads.map(lambda part: part[0].ask(lambda store: work(store, part[1])), parts)
        return [(places, result) for (_, places), result in zip(parts, list(results), strict=True)]

    def each(self, work: Callable[[Store, int], Result]) -> list[Result]:
        """What every shard replies, asked with its place; one that does not answer is an error."""
        places = range(len(self.shards))
        return list(self._threads.map(lambda place: self.shards[place].ask(lambda store: work(store, place)), places))

    def close(self) -> None:
        self._threads.shutdown()
        for shard in self.shards:
            shard.close()


def shard_of(id_: str, count: int) -> int:
    """The number of the shard that an item belongs to, for ever.

    >>> [shard_of(name, 2) for name in ("apple", "bread", "cheese", "dates")]
    [1, 1, 1, 0]
    """
    return int.from_bytes(blake2b(id_.encode(errors="surrogatepass"), digest_size=8).digest()) % count
