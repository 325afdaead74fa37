"""One question to several shards at once."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from lookalike.search.stores import StorageError, Store
from lookalike.search.stores.sharded.shard import Shard, shard_of

Result = TypeVar("Result")


class FanOut:
    """Threads that ask the shards of one index, each in its own."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        self.shards = shards
        self._threads = ThreadPoolExecutor(len(shards), "shard")

    def all(self, work: Callable[[Store], Result]) -> list[Result]:
        """What every shard replies; one that does not answer is an error."""
        return list(self._threads.map(lambda shard: shard.ask(work), self.shards))

    def tried(self, work: Callable[[Store, int], Result]) -> list[Result | StorageError]:
        """What every shard replies, asked with its place, or its trouble."""

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
