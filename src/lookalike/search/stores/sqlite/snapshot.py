"""A search in SQLite within one snapshot: the segments as of then, the items a filter leaves, the hits."""

import sqlite3
from collections.abc import Iterator, Sequence

import numpy as np

from lookalike.search.filters import Filter, Kind, as_sql
from lookalike.search.items import Answer, Hit, Identity, Near, Nearest, Vectors
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

    def named(self, queries: Vectors, column: tuple[str, Kind]) -> list[Nearest]:
        """The ids of the same items, with what a column says of each."""
        return [self._named(best, column) for best in self.candidates(queries, self.k)]

    def _named(self, best: Candidates, column: tuple[str, Kind]) -> Nearest:
        named = rows.pairs(self.connection, column, best.keys)
        items = [Near(*pair, score) for pair, score in zip(named, best.scores.tolist(), strict=True)]
        items = sorted(items, key=lambda item: (-item.similarity, item.id))[: self.k]
        return Nearest(items, best.certified, self.view.generation)


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
