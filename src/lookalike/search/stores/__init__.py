"""Where an index is kept: SQLite for one machine, PostgreSQL beyond it. Both answer alike."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from lookalike.errors import UserError, unknown
from lookalike.search.filters import Filter, Kind
from lookalike.search.items import Answer, Identity, Item, Mark, Value, Vectors


class GenerationError(Exception):
    """Vectors of a generation that does not answer any more: embed the pictures again."""


class StorageError(UserError):
    """Trouble of a store itself (not there, no rights, no room): nothing is wrong with what was asked."""


class UnknownItemError(UserError):
    """There is no item with this `id`."""

    def __init__(self, id_: str, near: Sequence[str]) -> None:
        super().__init__(str(unknown("item", id_, near)))
        self.id = id_


class BadValueError(UserError):
    """A value that no item, or not this column, can have."""


def complete(answers: Sequence[Answer]) -> Sequence[Answer]:
    """Answers of all shards, for whatever would be wrong without a word where some are missing."""
    missing = next((answer.missing for answer in answers if answer.missing), None)
    if missing is not None:
        raise StorageError(f"{', '.join(missing)} does not answer, and this takes all of them: try again later")
    return answers


@runtime_checkable
class Store(Protocol):
    """Items with their vectors, durably: whatever a method has returned from survives a crash."""

    @property
    def identity(self) -> Identity: ...

    def put(
        self, items: Sequence[Item], vectors: Vectors, pictures: Mapping[str, bytes] | None = None,
        generation: int | None = None,
    ) -> None:  # fmt: skip
        """Add items, or replace those with the same id, in one transaction; `pictures` of those that have no file.

        Vectors of another `generation` than the one that answers raise `GenerationError`.
        """
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

    def with_ids(self, ids: Sequence[str]) -> list[Item]:
        """Those of these items that there are."""
        ...

    def at_paths(self, paths: Sequence[str]) -> dict[str, Item]:
        """The items whose files these are."""
        ...

    def listed(self, where: Filter = (), after: str = "") -> Iterator[Item]:
        """All items in the order of their ids, without their vectors."""
        ...

    def picture(self, id_: str) -> bytes | None:
        """The picture of an item that has no file."""
        ...

    def pictures(self, ids: Sequence[str]) -> dict[str, bytes]:
        """Those of these items' pictures that are kept."""
        ...

    def count(self, where: Filter = ()) -> int: ...

    def distinct(self, column: str) -> int:
        """How many values a column has."""
        ...

    def version(self) -> str:
        """Different after every change."""
        ...

    def newest(self, count: int) -> list[Item]:
        """The items added last, the last first."""
        ...

    def counted(self, column: str, most: int) -> list[tuple[Value, int]]:
        """The most frequent values of a column, and how many items have them."""
        ...

    def first_of(self, column: str, values: Sequence[Value]) -> dict[Value, Item]:
        """The oldest item with each value of a column."""
        ...

    def extent(self, column: str) -> tuple[Value, Value]:
        """The least and the greatest value of a column."""
        ...

    def mark(self, mark: Mark, picture: bytes | None = None) -> int:
        """Keep a person's word on a hit, with the picture of the query; the number of the mark."""
        ...

    def unmark(self, number: int) -> bool:
        """Take a mark back; whether there was one."""
        ...

    def marks(self) -> list[Mark]:
        """All marks, oldest first."""
        ...

    def marked(self) -> int:
        """How many marks there are."""
        ...

    def query_picture(self, query: str) -> bytes | None:
        """The picture of a marked query."""
        ...

    def check(self) -> list[str]:
        """What is wrong with what is kept, one line each."""
        ...

    def compact(self) -> None:
        """Give back the space of what was removed."""
        ...

    def backup(self, file: Path) -> None:
        """A copy of everything in one file."""
        ...

    def columns(self) -> Mapping[str, Kind]:
        """The columns that filters and groups may name."""
        ...

    def know(self, kinds: Mapping[str, Kind]) -> None:
        """Have these columns, as if an item had brought them."""
        ...

    def read_fact(self, name: str) -> str | None:
        """A small document kept with the index, such as its calibration."""
        ...

    def write_fact(self, name: str, text: str | None) -> None: ...

    def begin_generation(self, identity: Identity) -> Identity:
        """Make room for the vectors of another model beside those that answer; an unfinished one is dropped."""
        ...

    def next_generation(self) -> Identity | None:
        """The generation that is being filled, if there is one."""
        ...

    def unfilled(self, generation: int, count: int, after: str = "") -> list[Item]:
        """Some items that have no vector in that generation yet, in the order of their ids."""
        ...

    def fill(self, generation: int, ids: Sequence[str], vectors: Vectors) -> None: ...

    def switch(self, generation: int) -> int:
        """Let the new generation answer, if every item has a vector in it; how many have none."""
        ...

    def approximate(self, on: bool, progress: Callable[[int, int], None] | None = None) -> None:
        """Answer from an approximate index, and measure it; or exactly, as without it."""
        ...

    def describe(self) -> dict[str, str]:
        """How the store answers, and how much room it takes, in words."""
        ...

    def model_files(self, fingerprint: str) -> dict[str, bytes]: ...

    def keep_model(self, fingerprint: str, files: Mapping[str, bytes]) -> None: ...

    def close(self) -> None: ...
