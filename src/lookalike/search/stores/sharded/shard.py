"""One of several stores that are one index, and which items belong to it."""

import threading
import time
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any, TypeVar

from lookalike.search.stores import StorageError, Store

REST = 5.0  # seconds in which a shard that did not answer is not asked again
Result = TypeVar("Result")


class Shard:
    """One of several stores, opened when it is first needed; one that is down is left alone for a while."""

    def __init__(self, name: str, open_: Callable[[], Store]) -> None:
        self.name, self._open = name, open_
        self._store: Store | None = None
        self._lock = threading.Lock()
        self._trouble, self._until = "", 0.0

    def ask(self, work: Callable[[Store], Result]) -> Result:
        if time.monotonic() < self._until:
            raise StorageError(self._trouble)
        try:
            result = work(self.store)
        except StorageError as error:
            self._trouble, self._until = f"{self.name}: {error}", time.monotonic() + REST
            raise StorageError(self._trouble) from error
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


def shard_of(id_: str, count: int) -> int:
    """The number of the shard that an item belongs to, for ever.

    >>> [shard_of(name, 2) for name in ("apple", "bread", "cheese", "dates")]
    [1, 1, 1, 0]
    """
    return int.from_bytes(blake2b(id_.encode(errors="surrogatepass"), digest_size=8).digest()) % count
