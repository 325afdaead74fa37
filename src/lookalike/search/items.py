"""What an index holds, and what it answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from jaxtyping import Float32

from lookalike.errors import UserError
from lookalike.geometry import Geometry
from lookalike.search.heat import Why

Value = str | int | float | bool | None
Verdict = Literal["sure", "maybe", "unknown", "uncalibrated"]
Vectors = Float32[np.ndarray, "n d"]


@dataclass(frozen=True)
class Identity:
    """What the vectors of an index are: from which model, in which geometry. Generations never mix."""

    fingerprint: str | None  # None: vectors made elsewhere, without a model
    geometry: Geometry
    dim: int
    generation: int = 1


@dataclass(frozen=True)
class Stamp:
    """The state of a file when it was embedded: size and time tell cheaply, the digest for certain."""

    size: int
    modified: int  # nanoseconds
    digest: str


@dataclass(frozen=True)
class Item:
    """Something that can be found: a picture, or a vector made elsewhere.

    id: its name in the index.
    path: its file, absolute.
    label: its class, if it has one.
    columns: further facts by name, for `where` and `group`.
    root: the folder, table or list it was added from.
    stamp: size and time of its file, by which a changed one is noticed.
    added: when, in seconds since 1970.
    mapped: whether its vector was computed from that of an earlier model, until `lookalike upgrade` embeds it again.
    """

    id: str
    path: str | None = None
    label: str | None = None
    columns: Mapping[str, Value] = field(default_factory=dict)
    root: str | None = None
    stamp: Stamp | None = None
    added: float | None = field(default=None, compare=False)  # the store knows
    mapped: bool = False

    def value(self, column: str) -> Value:
        """What a `column` says of it, one of its own or a further one."""
        if column in ("id", "path", "label", "root", "added"):
            own: Value = getattr(self, column)
            return own
        return self.columns.get(column)


@dataclass(frozen=True)
class Near:
    """An item near a query, by `id`: what one column calls it (`name`), and how similar it is."""

    id: str
    name: Value
    similarity: float


@dataclass(frozen=True)
class Nearest:
    """The nearest items of one query, the nearest first; the rest as in `Answer`."""

    items: Sequence[Near]
    certified: bool = True
    generation: int = 0
    missing: Sequence[str] = ()


@dataclass(frozen=True)
class Hit:
    """An `item` found, and its `similarity`: the cosine on the sphere, else −‖a − b‖²/2.

    Where things are searched for, the item is the best photo of a `thing` and the similarity is pooled over those in
    `photos`, the photos that speak for it, the best first.
    """

    item: Item
    similarity: float
    thing: Value = None
    photos: Sequence["Hit"] = ()

    @property
    def id(self) -> str:
        return self.item.id

    @property
    def label(self) -> str | None:
        return self.item.label

    @property
    def path(self) -> str | None:
        return self.item.path


@dataclass(frozen=True)
class Classified:
    """The label that an index gives to a picture, as an `Answer` has it; `problem`: why it cannot be read at all."""

    path: str
    label: str | None = None
    similarity: float = 0.0
    verdict: Verdict = "uncalibrated"
    second: str | None = None
    chance: float | None = None
    problem: str = ""


@dataclass(frozen=True)
class Answer:
    """The nearest items of one query, the nearest first, and three answers: is it here, what is it, how sure?

    hits: what was found.
    match: the chance that an item of the same label is in the index; None where that was not measured.
    label: what the hits say it is.
    second: the next label among the hits; None where they all have the same.
    chance: that the label is right; None where that was not measured.
    verdict: "sure", "maybe", "unknown" (nothing here is like it) or "uncalibrated".
    words: the answer for people, such as "sure: A" or "nothing like it here"; empty where nothing was calibrated.
    meaning: the verdict in one sentence; empty where nothing was calibrated.
    certified: whether one pass over the rounded scores proved it, without a second one.
    generation: of the vectors it was found with.
    missing: shards that did not answer: their items are not among the hits.
    explain: says why an item was found; None where the query is no single picture. See `why`.
    """

    hits: Sequence[Hit]
    verdict: Verdict = "uncalibrated"
    chance: float | None = None
    certified: bool = True
    generation: int = 0
    missing: Sequence[str] = ()
    label: str | None = None
    meaning: str = ""
    match: float | None = None
    second: str | None = None
    words: str = ""
    explain: Callable[[str], Why] | None = field(default=None, repr=False, compare=False)

    def why(self, hit: Hit) -> Why:
        """What the similarity of a `hit` is made of, place by place of both pictures; of a thing, its best photo's.

        Where several photos rank a thing, each of `hit.photos` is a hit of its own, which can be explained as well.
        """
        if self.explain is None:
            raise UserError("explaining a hit needs exactly one query picture and no counter-examples")
        return replace(self.explain(hit.id), photos=max(1, len(hit.photos)))


@dataclass(frozen=True)
class Mark:
    """A person's word on one hit of one query."""

    query: str  # the digest of its picture, or "item:" and its id
    query_item: str | None  # the item it was, if it was one
    item: str
    right: bool
    number: int = 0  # the store counts them
    by: str | None = None  # who said so, where that is known
    at: float | None = field(default=None, compare=False)  # when, in seconds since 1970; None: now
