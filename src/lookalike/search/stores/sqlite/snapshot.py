"""A search in SQLite within one snapshot: the segments as of then, the items a filter leaves, the hits."""

import sqlite3
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float32

from lookalike.search.filters import Filter, as_sql
from lookalike.search.items import Answer, Hit, Identity, Vectors
from lookalike.search.stores.fields import checked
from lookalike.search.stores.sqlite import rows, segments
from lookalike.search.stores.sqlite.cache import Cache
from lookalike.search.stores.sqlite.cells import vector_of
from lookalike.search.stores.sqlite.generations import identity_of
from lookalike.search.stores.sqlite.segments import Candidates, Keys, SegmentView


class SegmentSearch:
    """One search within one snapshot."""

    def __init__(
        self, connection: sqlite3.Connection, view: SegmentView, k: int, allowed: Keys | None, leave_out: Sequence[int]
    ) -> None:
        self.connection, self.view, self.k, self.allowed = connection, view, k, allowed
        self.leave_out = np.array(leave_out, np.int64)

    def candidates(self, queries: Vectors, number: int) -> Iterator[Candidates]:
        for best in self.view.nearest(queries, number + len(self.leave_out), self.allowed):
            kept = ~np.isin(best.keys, self.leave_out)
            yield Candidates(best.keys[kept], best.scores[kept], best.certified)

    def answers(self, queries: Vectors) -> list[Answer]:
        return [self._answer(best) for best in self.candidates(queries, self.k)]

    def _answer(self, best: Candidates) -> Answer:
        items = rows.select(self.connection, best.keys)
        hits = [Hit(item, float(score)) for item, score in zip(items, best.scores, strict=True)]
        hits = sorted(hits, key=lambda hit: (-hit.similarity, hit.id))[: self.k]
        return Answer(hits, certified=best.certified, generation=self.view.generation)

    def grouped(self, query: Float32[np.ndarray, " d"], physical: str) -> Answer:
        """The nearest item of each group: look at more and more items until k groups have come up."""
        number = 4 * self.k
        while True:
            (best,) = self.candidates(query[None], number)
            named = rows.pairs(self.connection, physical, best.keys)
            first: dict[object, int] = {}
            for place in sorted(range(len(named)), key=lambda place: (-best.scores[place], named[place][0])):
                first.setdefault(named[place][1], place)
            if len(first) >= self.k or number >= len(self.view):
                chosen = list(first.values())[: self.k]
                return self._answer(Candidates(best.keys[chosen], best.scores[chosen], best.certified))
            number *= 4


def allowed(connection: sqlite3.Connection, where: Filter) -> Keys | None:
    """The keys that the conditions leave, rising; None: all."""
    if not where:
        return None
    clause, parameters = as_sql(where, rows.names_of(connection))
    keys = connection.execute(f"SELECT key FROM items WHERE {clause} ORDER BY key", parameters)
    return np.fromiter((row[0] for row in keys), np.int64)


def refreshed(connection: sqlite3.Connection, view: SegmentView | None, cache: Cache) -> SegmentView:
    """The segments as of this snapshot, which is the first thing that a search looks at.

    They are those in memory (`view`), else those on disk, else built again; then what is new is added. Whatever is
    ahead of the snapshot belongs to another history: a backup has taken the place of what it was built from.
    """
    identity = identity_of(connection)
    if view is None or not _known(connection, view, identity):
        view = cache.load(identity.generation, identity.dim, identity.geometry == "sphere")
        connection.execute("ROLLBACK")  # others write the cache, too: look at the truth after it, not before
        connection.execute("BEGIN")
        identity = identity_of(connection)
    if view is None or not _known(connection, view, identity):
        view = SegmentView((), identity.generation, 0, "", identity.geometry == "sphere")
    change, token = connection.execute("SELECT number, token FROM changes ORDER BY number DESC LIMIT 1").fetchone()
    if (view.change, view.token) != (change, token):
        new = _new_segment(connection, view, identity.dim)
        gone = connection.execute("SELECT key FROM removals WHERE change > ? ORDER BY key", (view.change,))
        view = view.advanced(new, np.fromiter((row[0] for row in gone), np.int64), change, token)
        view = cache.save(view)
    return view


def _known(connection: sqlite3.Connection, view: SegmentView, identity: Identity) -> bool:
    """Whether a view belongs to the history of this truth."""
    if view.generation != identity.generation:
        return False
    row = connection.execute("SELECT token FROM changes WHERE number = ?", (view.change,)).fetchone()
    return row is not None and row[0] == view.token


def _new_segment(connection: sqlite3.Connection, view: SegmentView, dim: int) -> segments.Segment | None:
    """The items that the view does not have yet."""
    table, last = f"vectors_{view.generation}", (view.last_key,)
    count = connection.execute(f"SELECT count(*) FROM {table} WHERE key > ?", last).fetchone()[0]
    if not count:
        return None
    keys, vectors = np.empty(count, np.int64), np.empty((count, dim), np.float32)
    for place, (key, content) in enumerate(
        connection.execute(f"SELECT key, vector FROM {table} WHERE key > ? ORDER BY key", last)
    ):
        keys[place], vectors[place] = key, vector_of(content, dim)
    return segments.build(keys, checked(vectors, count, dim), view.spherical)
