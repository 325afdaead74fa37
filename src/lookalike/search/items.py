"""What an index holds, and what it answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from jaxtyping import Float32

from lookalike.geometry import Geometry

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
    """Something that can be found: a picture, or a vector made elsewhere."""

    id: str
    path: str | None = None  # absolute
    label: str | None = None
    columns: Mapping[str, Value] = field(default_factory=dict)
    root: str | None = None  # the folder, table or list it was added from
    stamp: Stamp | None = None
    added: float | None = field(default=None, compare=False)  # seconds since 1970; the store knows


@dataclass(frozen=True)
class Hit:
    """An item found, and how near: the cosine on the sphere, else −‖a − b‖²/2."""

    item: Item
    similarity: float

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
    """The label that an index gives to a picture."""

    path: str
    label: str | None
    similarity: float
    verdict: Verdict


@dataclass(frozen=True)
class Answer:
    """The nearest items of one query, the nearest first, and what calibration says of the best one."""

    hits: Sequence[Hit]
    verdict: Verdict = "uncalibrated"
    chance: float | None = None  # that the best hit is right; None: only its similarity was judged
    certified: bool = True  # proven by the first look at the rounded scores, without a second one
    generation: int = 0  # of the vectors it was found with
    missing: Sequence[str] = ()  # shards that did not answer: their items are not among the hits


@dataclass(frozen=True)
class Mark:
    """A person's word on one hit of one query."""

    query: str  # the digest of its picture, or "item:" and its id
    query_item: str | None  # the item it was, if it was one
    item: str
    right: bool
    number: int = 0  # the store counts them
