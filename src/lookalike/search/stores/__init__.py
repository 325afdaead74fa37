"""Where an index is kept: SQLite for one machine, PostgreSQL beyond it. Both answer alike."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from lookalike.errors import UserError, unknown
from lookalike.progress import Progress
from lookalike.search.filters import Filter, Kind
from lookalike.search.items import Answer, Identity, Item, Mark, Nearest, Value, Vectors
from lookalike.search.log import LogEntry


class GenerationError(UserError):
    """Vectors of another generation than the store has, or is filling: embed the pictures again."""

    def __init__(self) -> None:
        super().__init__("the index has since moved on to another model: what was written stays; look at its status")


class StorageError(UserError):
    """The store itself failed (missing, no permission, disk full): nothing is wrong with the request."""


class UnknownItemError(UserError):
    """There is no item with this `id`."""

    def __init__(self, id_: str, near: Sequence[str]) -> None:
        super().__init__(str(unknown("item", id_, near)))
        self.id = id_


class BadValueError(UserError):
    """A value that no item, or not this column, can have; `item` is the id of the one that has it."""

    def __init__(self, message: str, item: str | None = None) -> None:
        super().__init__(message)
        self.item = item


def complete(answers: Sequence[Answer]) -> Sequence[Answer]:
    """Refuse answers with missing shards where they would be silently wrong."""
    missing = next((answer.missing for answer in answers if answer.missing), None)
    if missing is not None:
        raise StorageError(f"{', '.join(missing)} does not answer, and this needs all shards: try again later")
    return answers


class Documents(Protocol):
    """What is kept beside the items: small texts by name, the files of models, pictures of items that have no file."""

    def read(self, name: str) -> str | None:
        """A small document, such as the calibration."""

    def write(self, name: str, text: str | None) -> None: ...

    def model(self, fingerprint: str) -> dict[str, bytes]:
        """The files of a model."""

    def keep_model(self, fingerprint: str, files: Mapping[str, bytes]) -> None: ...

    def pictures(self, ids: Sequence[str]) -> dict[str, bytes]:
        """Those of these items' pictures that are kept."""


class Marks(Protocol):
    """What people say about hits. It changes no search; `lookalike labels` writes it out.

    The picture of a marked query is kept with its marks, until the last of them is taken back.
    """

    def add(self, mark: Mark, picture: bytes | None = None) -> int:
        """Keep a mark, in the place of an earlier one of the same query and item; its number."""

    def remove(self, number: int) -> bool:
        """Take a mark back; whether there was one."""

    def every(self) -> list[Mark]:
        """All marks, oldest first."""

    def of(self, query: str) -> list[Mark]:
        """The marks of one query, oldest first."""

    def count(self) -> int: ...

    def picture(self, query: str) -> bytes | None:
        """The picture of a marked query."""


class ActionLog(Protocol):
    """Who did what: entries that are added and never changed."""

    def append(self, *entries: LogEntry) -> None:
        """Keep entries, with the present time."""

    def entries(
        self, actions: Sequence[str] = (), subject: str | None = None, last: int | None = None
    ) -> list[LogEntry]:
        """Entries in their order: of some `actions`, about one `subject`, the `last` ones."""


class Generations(Protocol):
    """The vectors of another model, filled in beside those that answer."""

    def begin(self, identity: Identity) -> Identity:
        """Make room for the next generation; an unfinished one is dropped."""

    def upcoming(self) -> Identity | None:
        """The generation that is being filled, if there is one."""

    def unfilled(self, generation: int, count: int, after: str = "") -> list[Item]:
        """Some items that have no vector in that generation yet, in the order of their ids."""

    def fill(self, new: Identity, items: Sequence[Item], vectors: Vectors, mapped: bool = False) -> None:
        """Vectors of its model, or `mapped` ones: computed from those of the generation that answers.

        Items that were removed, or show another picture by now, are passed over. Where the generation that is being
        filled is not this one (any more), a `GenerationError`.
        """

    def filled(self, new: Identity) -> tuple[list[str], Vectors]:
        """The items that have a vector of its model in it, in the order of their ids; mapped ones are left out."""

    def switch(self, generation: int) -> int:
        """Let the new generation answer, if every item has a vector in it; how many have none."""

    def mapped(self, count: int, after: str = "") -> list[Item]:
        """Some items whose vectors are mapped, in the order of their ids."""

    def mapped_count(self) -> int: ...

    def settle(self, generation: int, ids: Sequence[str], vectors: Vectors) -> None:
        """Vectors of the model in the place of mapped ones, in one transaction; items that are not mapped stay.

        Vectors of another `generation` than the one that answers raise `GenerationError`.
        """


@dataclass(frozen=True)
class Column:
    """What a column holds."""

    kind: Kind
    distinct: int = 0  # of texts: how many there are
    counts: Sequence[tuple[Value, int]] = field(default_factory=list)  # of the most frequent texts
    least: Value = None  # of numbers
    most: Value = None


@dataclass(frozen=True)
class Summary:
    """What an index holds, in numbers."""

    columns: Mapping[str, Column]
    newest: Sequence[Item]  # the items added last, the last first


@dataclass(frozen=True)
class Forgotten:
    """What is left of items that were forgotten: nothing in the index, and what it cannot reach."""

    items: int  # that there were
    marks: int  # that spoke of them
    rewritten: Sequence[str]  # files or tables that were written anew or deleted
    beyond: Sequence[str]  # places that may still hold them


@runtime_checkable
class Store(Protocol):
    """Items with their vectors, durably: whatever a method has returned from survives a crash."""

    @property
    def documents(self) -> Documents: ...

    @property
    def marks(self) -> Marks: ...

    @property
    def log(self) -> ActionLog: ...

    @property
    def generations(self) -> Generations: ...

    @property
    def identity(self) -> Identity: ...

    def put(
        self,
        items: Sequence[Item],
        vectors: Vectors,
        pictures: Mapping[str, bytes] | None = None,
        generation: int | None = None,
    ) -> None:
        """Add items, or replace those with the same id, in one transaction; `pictures` of those that have no file.

        Vectors of another `generation` than the one that answers raise `GenerationError`.
        """

    def remove(self, ids: Sequence[str]) -> int:
        """Remove items in one transaction; how many there were."""

    def forget(self, ids: Sequence[str]) -> Forgotten:
        """Remove items and marks of them so that no file of the index holds a byte of them; others wait meanwhile.

        Ids that are not (or no longer) there do no harm: what an interrupted call has left is forgotten by the next.
        """

    def search(self, queries: Vectors, k: int, where: Filter = (), leave_out: Sequence[str] = ()) -> list[Answer]:
        """The k nearest items of every query, exactly: falling similarity, then rising id.

        Items named in `leave_out` are not looked at.
        """

    def nearest(
        self, queries: Vectors, k: int, column: str, where: Filter = (), leave_out: Sequence[str] = ()
    ) -> list[Nearest]:
        """The same items by their ids, with what one column says of them: sooner than all that is known of each."""

    def vectors(self, ids: Sequence[str]) -> Vectors:
        """The vectors of items; an unknown id is refused."""

    def items(self, ids: Sequence[str]) -> list[Item]:
        """Those of these items that exist, in the order of `ids`."""

    def at_paths(self, paths: Sequence[str]) -> dict[str, Item]:
        """The items whose files these are."""

    def first_of(self, column: str, values: Sequence[Value]) -> dict[Value, Item]:
        """The oldest item with each value of a column."""

    def sample(self, count: int) -> list[Item]:
        """Up to `count` different items, drawn at random from all."""

    def listed(self, where: Filter = (), after: str = "") -> Iterator[Item]:
        """All items in the order of their ids, without their vectors."""

    def scan(self, after: str | None = None, where: Filter = ()) -> Iterator[tuple[list[Item], Vectors]]:
        """All items in the order of their ids, in blocks, with their vectors, which are of one generation."""

    def count(self, where: Filter = ()) -> int: ...

    def columns(self) -> Mapping[str, Kind]:
        """The columns that filters and things may name."""

    def know(self, kinds: Mapping[str, Kind]) -> None:
        """Have these columns, as if an item had brought them."""

    def summary(self, columns: Sequence[str], values: int = 0, newest: int = 0) -> Summary:
        """What these columns hold, with so many of their most frequent `values`, and the `newest` items."""

    def version(self) -> str:
        """A text that differs after every change."""

    def describe(self) -> dict[str, str]:
        """How the store answers, and how much room it takes, in words."""

    def check(self) -> list[str]:
        """What is wrong with what is kept, one line each."""

    def compact(self) -> None:
        """Give back the space of what was removed."""

    def backup(self, file: Path) -> None:
        """A copy of everything in one file."""

    def steady(self) -> AbstractContextManager[object]:
        """What this thread reads within it is of one state, where the store can do that, and comes sooner."""

    def close(self) -> None: ...


@runtime_checkable
class Approximating(Protocol):
    """What stores on PostgreSQL can do beside the rest."""

    def approximate(self, on: bool, progress: Progress | None = None) -> None:
        """Answer from an approximate index, and measure it; or exactly, as without it."""
