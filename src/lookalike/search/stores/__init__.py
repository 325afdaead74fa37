"""Where an index is kept: SQLite for one machine, PostgreSQL beyond it. Both answer alike."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

from lookalike.search.filters import Filter, Kind
from lookalike.search.items import Answer, Identity, Item, Vectors


@runtime_checkable
class Store(Protocol):
    """Items with their vectors, durably: whatever a method has returned from survives a crash."""

    @property
    def identity(self) -> Identity: ...

    def put(self, items: Sequence[Item], vectors: Vectors) -> None:
        """Add items, or replace those with the same id, in one transaction."""
        ...

    def remove(self, ids: Sequence[str]) -> int:
        """Remove items in one transaction; how many there were."""
        ...

    def search(
        self, queries: Vectors, k: int, where: Filter = (), group: str | None = None, leave_out: Sequence[str] = ()
    ) -> list[Answer]:
        """The k nearest items of every query, exactly: falling similarity, then rising id.

        With `group` the nearest of each value of that column; items named in `leave_out` are not looked at.
        """
        ...

    def vectors(self, ids: Sequence[str]) -> Vectors:
        """The vectors of items; an unknown id is refused."""
        ...

    def items(self, ids: Sequence[str]) -> list[Item]:
        """The items with these ids; an unknown id is refused."""
        ...

    def scan(self, after: str | None = None, where: Filter = ()) -> Iterator[tuple[list[Item], Vectors]]:
        """All items in the order of their ids, in blocks, with their vectors."""
        ...

    def count(self, where: Filter = ()) -> int: ...

    def columns(self) -> Mapping[str, Kind]:
        """The columns that filters and groups may name."""
        ...

    def read_fact(self, name: str) -> str | None:
        """A small document kept with the index, such as its calibration."""
        ...

    def write_fact(self, name: str, text: str | None) -> None: ...

    def model_files(self, fingerprint: str) -> dict[str, bytes]: ...

    def keep_model(self, fingerprint: str, files: Mapping[str, bytes]) -> None: ...

    def close(self) -> None: ...
