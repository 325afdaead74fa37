"""The nearest things, where a thing is the photos that one column calls by the same name; exact, whatever the store.

A photo that the column says nothing of is a thing of its own. The score of a thing is the mean over the query's photos
of the mean similarity of its `pooled` best photos (of all of them, where it has fewer). Things come by falling score,
then by the id of their best photo: the same as from scoring every photo of every thing.

The bound that proves it. Each of the query's photos is asked for its n nearest photos; s is the similarity of the last
of these. No photo of a thing that is not among them is above s, nor is a mean of such: its score is at most the mean of
the s. A thing of which some photos are among them has at most the mean of those that were seen, for every query's photo
(s where none was), since further photos only lower a mean of the best. What can still reach the k-th place is scored
by all of its photos; and n grows until nothing unseen can. Equal scores keep to it, too: photos come by rising id where
they are equally similar, so the best photo of an unseen thing with the score of the bound has a higher id than the
last.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lookalike.search.filters import Condition, Filter
from lookalike.search.items import Hit, Item, Near, Nearest, Value, Vectors
from lookalike.search.stores import Store

FIRST = 64  # photos that are looked at for each of the query's: the scan scores as many anyway
FOR_EACH = 4  # photos that are looked at for each thing that is asked for
MORE = 4  # times as many where those do not suffice
EVERY = 1 << 31  # more photos than a thing has
TOGETHER = 64  # things that are scored by one question
Name = tuple[bool, Value]  # of a thing: whether it is a photo without one, then its id


@dataclass(frozen=True)
class SeenThing:
    """The photos of one thing that were seen, for each of the query's photos, the nearest first."""

    photos: Sequence[Sequence[Near]]
    pooled: int

    def score(self, otherwise: Sequence[float]) -> float:
        """The pooled similarity; that of `otherwise` for each of the query's photos that has seen none."""
        return _mean(
            [
                _mean([photo.similarity for photo in some[: self.pooled]]) if some else other
                for some, other in zip(self.photos, otherwise, strict=True)
            ]
        )

    @property
    def settled(self) -> bool:
        """Whether no further photo could change the score."""
        return all(len(some) >= self.pooled for some in self.photos)

    @property
    def speaking(self) -> list[Near]:
        """The photos that the score comes from, the most similar first."""
        best: dict[str, Near] = {}
        for photo in sorted((photo for some in self.photos for photo in some[: self.pooled]), key=_order):
            best.setdefault(photo.id, photo)
        return list(best.values())


@dataclass(frozen=True)
class Thing:
    """A thing that was found: its name, its score, and the photos that speak for it, the best first."""

    name: Value
    score: float
    photos: Sequence[Near]

    @property
    def order(self) -> tuple[float, str]:
        return -self.score, self.photos[0].id


@dataclass(frozen=True)
class FoundThings:
    """The nearest things, and how they were found; see `Answer`."""

    things: Sequence[Thing]
    certified: bool
    generation: int
    missing: Sequence[str]


@dataclass(frozen=True)
class ThingSearch:
    """One question for things: photos of one thing as vectors, and which photos may answer.

    `start`: how many photos are looked at first for each of the query's; None: `first_photos`.
    """

    store: Store
    column: str
    queries: Vectors
    k: int
    pooled: int = 1
    where: Filter = ()
    leave_out: Sequence[str] = ()
    start: int | None = None

    def found(self, first: Sequence[Nearest] | None = None) -> FoundThings:
        """The k nearest things; `first` are the first photos of each query where they are known already."""
        number = first_photos(self.k, self.pooled) if self.start is None else self.start
        near = self._nearest(number) if first is None else list(first)
        while True:
            whole = all(len(one.items) < number for one in near)
            things = self._reaching(near, whole)
            if whole or (len(things) == self.k and things[-1].order < self._bound(near)):
                missing = dict.fromkeys(name for one in near for name in one.missing)
                return FoundThings(things, all(one.certified for one in near), near[0].generation, tuple(missing))
            number *= MORE
            near = self._nearest(number)

    def _nearest(self, number: int, conditions: Filter = ()) -> list[Nearest]:
        where = (*self.where, *conditions)
        return self.store.nearest(self.queries, number, self.column, where, self.leave_out)

    def _bound(self, near: Sequence[Nearest]) -> tuple[float, str]:
        """No thing that was not seen comes before this."""
        last = [one.items[-1] for one in near]
        return -_mean([photo.similarity for photo in last]), min(photo.id for photo in last)

    def _reaching(self, near: Sequence[Nearest], whole: bool) -> list[Thing]:
        """The k best of the things that were seen; `whole`: all photos were."""
        floors = [one.items[-1].similarity if one.items else -math.inf for one in near]
        seen = self._by_thing(near)
        things = [_thing(name, one) for name, one in seen.items() if whole or one.settled]
        most = {name: one.score(floors) for name, one in seen.items() if not (whole or one.settled)}
        rest = sorted(most, key=lambda name: -most[name])
        while True:
            things = sorted(things, key=lambda thing: thing.order)[: self.k]
            least = things[-1].score if len(things) == self.k else -math.inf
            some, rest = [name for name in rest[:TOGETHER] if most[name] >= least], rest[TOGETHER:]
            if not some:
                return things
            things += [_thing(name, one) for name, one in self._whole(some)]

    def _whole(self, names: Sequence[Name]) -> Iterator[tuple[Name, SeenThing]]:
        """Things with all of their photos; those that are gone meanwhile are not among them."""
        for alone, column in ((False, self.column), (True, "id")):
            values = tuple(value for own, value in names if own == alone)
            if values:
                yield from self._by_thing(self._nearest(EVERY, (Condition(column, "=", values),))).items()

    def _by_thing(self, near: Sequence[Nearest]) -> dict[Name, SeenThing]:
        photos: dict[Name, list[list[Near]]] = {}
        for place, one in enumerate(near):
            for photo in one.items:
                name = (True, photo.id) if photo.name is None else (False, photo.name)
                photos.setdefault(name, [[] for _ in near])[place].append(photo)
        return {name: SeenThing(some, 1 if name[0] else self.pooled) for name, some in photos.items()}


def first_photos(k: int, pooled: int) -> int:
    """How many photos are looked at first for k things: another look takes as long as the first."""
    return pooled * max(FIRST, FOR_EACH * k)


def _thing(name: Name, seen: SeenThing) -> Thing:
    return Thing(None if name[0] else name[1], seen.score([-math.inf] * len(seen.photos)), seen.speaking)


def _mean(values: Sequence[float]) -> float:
    """Rounded once, so that no order of the values changes it, and a larger value never lowers it."""
    return math.fsum(values) / len(values)


def _order(photo: Near) -> tuple[float, str]:
    return -photo.similarity, photo.id


def hits_of(store: Store, things: Sequence[Thing]) -> list[Hit]:
    """Things with the items of their photos; a photo that was removed meanwhile is left out."""
    ids = dict.fromkeys(photo.id for thing in things for photo in thing.photos)
    items: Mapping[str, Item] = {item.id: item for item in store.items(list(ids))}
    hits = []
    for thing in things:
        photos = [Hit(items[photo.id], photo.similarity) for photo in thing.photos if photo.id in items]
        if photos:
            hits.append(Hit(photos[0].item, thing.score, thing.name, photos))
    return hits


def called(item: Item, column: str | None) -> Item:
    """An item whose label is the thing that it shows; without a column of things as it is."""
    return item if column is None else replace(item, label=text_of(item.value(column)))


def text_of(name: Value) -> str | None:
    """What a thing is called in an answer: a number as people write it.

    >>> text_of("00123"), text_of(12.0), text_of(None)
    ('00123', '12', None)
    """
    if name is None:
        return None
    return str(int(name)) if isinstance(name, float) and name.is_integer() else str(name)
