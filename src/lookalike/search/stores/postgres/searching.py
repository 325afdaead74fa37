"""The nearest items on a server: it names candidates by float32 scores, the client scores them again in float64.

What float32 can get wrong is bounded (`Slack`), so an exact answer is proven: no item that was not named can reach the
last place. Where the first statement leaves that open, a second one names every item that could. Answers are those of
the store in a folder, to the bit: scores, order, ties by id.

Each is one statement, with a word on whether the index is still as it is known (`STATE`); so one query needs no
transaction. Several queries share one, and so does whatever a second statement has not settled.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float32

from lookalike.search.filters import Filter
from lookalike.search.items import Answer, Hit, Vectors
from lookalike.search.scan import rounded as scan
from lookalike.search.stores import fields
from lookalike.search.stores.postgres import approximate, rows, wire
from lookalike.search.stores.postgres.approximate import HnswGraph, SearchMemory
from lookalike.search.stores.postgres.database import STATE, Snapshot, plans_kept

UNIT = 2.0**-24  # rounding of a float32, relative
TINY = 1e-30  # what underflow can swallow
Query = Float32[np.ndarray, " d"]
LEAST = 16  # candidates of a first statement
Row = tuple[Any, ...]  # score of the server, vector as it is sent, then the columns of the item
VECTOR, COLUMNS, ID = 1, 2, 3


@dataclass(frozen=True)
class Slack:
    """How far the server's score may be from the exact one: so much, and such a part of it."""

    absolute: float
    relative: float

    @staticmethod
    def of(snapshot: Snapshot, query: Query) -> "Slack":
        """d products, d sums in any order, the difference before a square: d + 4 roundings each, and room to spare."""
        share = 1.05 * (snapshot.identity.dim + 4) * UNIT
        length = float(np.linalg.norm(query.astype(np.float64)))
        if snapshot.identity.geometry == "sphere":
            return Slack(share * length * snapshot.reach + TINY, 0.0)
        return Slack(TINY, share)

    def at(self, score: float) -> float:
        return self.absolute + self.relative * abs(score)


@dataclass(frozen=True)
class TableSearch:
    """One search: k hits under a condition."""

    snapshot: Snapshot
    k: int
    condition: str
    leave_out: Sequence[str]
    filtered: bool = False  # whether the condition leaves out items

    @property
    def spherical(self) -> bool:
        return self.snapshot.identity.geometry == "sphere"

    @property
    def score(self) -> str:
        return "inner_product(vector, %s)" if self.spherical else "-0.5 * power(l2_distance(vector, %s), 2)"

    def answer(self, query: Query, graph: HnswGraph | None) -> Answer | None:
        """From the graph if there is one and it finds enough, else exactly; None where the index has changed."""
        if graph is not None:
            named = approximate.candidates(query, self, graph)
            best = None if named is None else self._best(named, query)
            if best is None or len(best) == self.k:
                return None if best is None else self._worded(best, certified=False)
        return self._exact(query)

    def _exact(self, query: Query) -> Answer | None:
        slack, number = Slack.of(self.snapshot, query), max(LEAST, self.k + self.k // 2)
        named = self._named(query, number, None)
        if named is None:
            return None
        best = self._best(named, query)
        if len(named) < number or _reached(named, slack) < best[-1][0]:
            return self._worded(best, certified=True)
        last = best[-1][0]
        named = self._named(query, self.k, last - 2 * slack.at(last))
        best = [] if named is None else self._best(named, query)
        # the first statement may have seen items that are gone now: then this one has not named all
        return self._worded(best, certified=False) if len(best) == self.k and best[-1][0] >= last else None

    def _named(self, query: Query, number: int, floor: float | None) -> list[Row] | None:
        """The best by the server's scores, or all from a floor on, no more than so many with the same vector."""
        which, floors = (f"ORDER BY score DESC LIMIT {number}", []) if floor is None else ("WHERE score >= %s", [floor])
        source = f"{self.score} AS score FROM {self.table} WHERE {self.allowed}"
        if floor is None:
            named = f"""SELECT score, vector_send(vector), {self.columns}
                        FROM (SELECT ctid AS place, {source} {which}) AS near
                        JOIN {self.table} ON {self.table}.ctid = place"""
        else:
            named = f"""SELECT score, vector_send(vector), {self.columns} FROM (SELECT *, row_number() OVER
                            (PARTITION BY vector ORDER BY id) AS rank FROM (SELECT *, {source}) AS scored {which})
                            AS ranked WHERE rank <= {number}"""
        return self.selected(named, (query, *self.left_out_values, *floors))

    def selected(self, statement: str, parameters: Sequence[Any]) -> list[Row] | None:
        """What a statement names, or None where the index is not as it was known when it looked."""
        state, connection = self.snapshot.state, self.snapshot.connection
        whole = f"SELECT (SELECT {STATE} = %s), named.* FROM ({statement}) AS named"
        named = connection.execute(whole, (state, *parameters), binary=True).fetchall()
        if not named:  # a state never comes back: if it is the known one now, it was so a moment ago
            named = connection.execute(f"SELECT {STATE} = %s", (state,)).fetchall()
            return [] if named[0][0] else None
        return [row[1:] for row in named] if named[0][0] else None

    @property
    def table(self) -> str:
        return self.snapshot.table

    @property
    def allowed(self) -> str:
        return f"{self.condition} AND NOT id = ANY(%s)" if self.leave_out else self.condition

    @property
    def left_out_values(self) -> list[list[str]]:
        return [list(self.leave_out)] if self.leave_out else []

    @property
    def columns(self) -> str:
        return ", ".join(rows.columns_of(self.snapshot))

    def _best(self, named: Sequence[Row], query: Query) -> list[tuple[float, Row]]:
        """The k best in float64 with their scores."""
        if not named:
            return []
        vectors = wire.vectors([row[VECTOR] for row in named], self.snapshot.identity.dim)
        scores = scan.exact_scores(vectors, query, self.spherical)
        ranked = sorted(zip(scores.tolist(), named, strict=True), key=lambda pair: (-pair[0], pair[1][ID]))
        return ranked[: self.k]

    def _worded(self, best: Sequence[tuple[float, Row]], certified: bool) -> Answer:
        own = list(fields.own_columns(self.snapshot.names))
        hits = [Hit(rows.as_item(row[COLUMNS:], own), score) for score, row in best]
        return Answer(hits, certified=certified, generation=self.snapshot.identity.generation)


def _reached(named: Sequence[Row], slack: Slack) -> float:
    """No item that was not named has a higher score."""
    lowest = min(float(row[0]) for row in named)
    return lowest + slack.at(lowest)


def search(
    snapshot: Snapshot,
    queries: Vectors,
    k: int,
    where: Filter,
    leave_out: Sequence[str],
    memory: SearchMemory,
    column: str = "id",
) -> list[Answer] | None:
    """One answer for each query; None where the index has changed in between, which it cannot in a transaction.

    A `column` that there is not is refused.
    """
    k = fields.checked_k(k)
    queries = fields.checked(queries, len(queries), snapshot.identity.dim)
    fields.physical(snapshot.names, column)
    if leave_out:
        rows.check_known(snapshot, leave_out, {item.id for item in rows.items(snapshot, leave_out)})
    one = TableSearch(snapshot, k, memory.clause(snapshot, where), leave_out, bool(where))
    graph = approximate.graph_for(one, memory)
    answers = []
    with plans_kept(snapshot.connection):
        for query in queries:
            answer = one.answer(query, graph)
            if answer is None:
                return None
            answers.append(answer)
    return answers
