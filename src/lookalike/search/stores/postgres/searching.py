"""The nearest items on a server: it names candidates by float32 scores, the client scores them again in float64.

What float32 can get wrong is bounded (`Slack`), so an exact answer is proven: no item that was not named can reach the
last place. Where the first look leaves that open, a second one names every item that could. Answers are those of the
store in a folder, to the bit: scores, order, ties by id.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float32

from lookalike.errors import check
from lookalike.search import scan
from lookalike.search.filters import Filter
from lookalike.search.items import Answer, Hit, Vectors
from lookalike.search.stores import fields
from lookalike.search.stores.postgres import approximate, rows
from lookalike.search.stores.postgres.approximate import Graph
from lookalike.search.stores.postgres.database import Snapshot

UNIT = 2.0**-24  # rounding of a float32, relative
TINY = 1e-30  # what underflow can swallow
Query = Float32[np.ndarray, " d"]
LEAST = 32  # candidates of a first look
Row = tuple[Any, ...]  # id, score of the server, vector, group, then the columns of the item


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
class Search:
    """One search within one snapshot: k hits under a condition, one for each value of a column with `group`."""

    snapshot: Snapshot
    k: int
    condition: str
    parameters: Sequence[Any]
    group: str | None  # where that column is in the table
    empty: str  # what stands for a missing value of it

    @property
    def spherical(self) -> bool:
        return self.snapshot.identity.geometry == "sphere"

    def answer(self, query: Query, graph: Graph | None) -> Answer:
        """From the graph if there is one and it finds enough, else exactly."""
        if graph is not None:
            found = self._best(approximate.candidates(self.snapshot, graph, query, self), query)
            if len(found) == self.k:
                return self._worded(found, certified=False)
        return self._exact(query)

    def _exact(self, query: Query) -> Answer:
        slack, number = Slack.of(self.snapshot, query), max(LEAST, 2 * self.k)
        named = self._named(query, slack, f"ORDER BY score DESC LIMIT {number}", (), number)
        best = self._best(named, query)
        complete = len({row[3] for row in named}) < number
        certified = complete or _reached(named, slack) < best[-1][0]
        if not certified:
            last = best[-1][0]
            named = self._named(query, slack, "WHERE score >= %s", (last - 2 * slack.at(last),), self.k)
            best = self._best(named, query)
        return self._worded(best, certified)

    def _named(self, query: Query, slack: Slack, which: str, parameters: Sequence[Any], most: int) -> list[Row]:
        """The items that one look at the server's scores names; no more than so many with the same vector."""
        table = self.snapshot.table
        score = "inner_product(vector, %s)" if self.spherical else "-0.5 * power(l2_distance(vector, %s), 2)"
        values = [query, *self.parameters, *parameters]
        if self.group is None:
            near = f"""near AS (SELECT * FROM (SELECT key, {score} AS score FROM {table} WHERE {self.condition})
                                AS scored {which})"""
            name, equals = "id", "vector"
        else:
            # the best of each group by the server's scores, and whatever rounding may have put behind it
            near = f"""scored AS MATERIALIZED (SELECT key, {self.group} IS NULL AS missing,
                           coalesce({self.group}, {self.empty}) AS value, {score} AS own FROM {table}
                           WHERE {self.condition}),
                       best AS (SELECT * FROM (SELECT missing, value, max(own) AS score FROM scored
                           GROUP BY missing, value) AS groups {which}),
                       near AS (SELECT key, score, missing, value FROM best JOIN scored USING (missing, value)
                           WHERE own >= score - %s - %s * abs(score))"""
            values += [2 * slack.absolute, 2 * slack.relative]
            name, equals, most = "(missing, value)::text", "vector, missing, value", 1
        statement = f"""WITH {near} SELECT id, score, vector, name, {self.columns} FROM (SELECT *, {name} AS name,
                        row_number() OVER (PARTITION BY {equals} ORDER BY id) AS place
                        FROM near JOIN {table} USING (key)) AS named WHERE place <= {most}"""
        return self.snapshot.connection.execute(statement, values, binary=True).fetchall()

    @property
    def columns(self) -> str:
        return ", ".join(rows.columns_of(self.snapshot))

    def _best(self, named: Sequence[Row], query: Query) -> list[tuple[float, Row]]:
        """The k best in float64 with their scores, one of each group."""
        if not named:
            return []
        scores = scan.exact_scores(np.stack([row[2] for row in named]), query, self.spherical)
        ranked = sorted(zip(scores.tolist(), named, strict=True), key=lambda pair: (-pair[0], pair[1][0]))
        first: dict[str, tuple[float, Row]] = {}
        for score, row in ranked:
            first.setdefault(row[3], (score, row))
        return list(first.values())[: self.k]

    def _worded(self, best: Sequence[tuple[float, Row]], certified: bool) -> Answer:
        hits = [Hit(rows.as_item(self.snapshot, row[4:]), score) for score, row in best]
        return Answer(hits, certified=certified, generation=self.snapshot.identity.generation)


def _reached(named: Sequence[Row], slack: Slack) -> float:
    """No item that was not named has a higher score."""
    lowest = min(float(row[1]) for row in named)
    return lowest + slack.at(lowest)


def search(
    snapshot: Snapshot, queries: Vectors, k: int, where: Filter, group: str | None, leave_out: Sequence[str],
    exactly: bool = False,
) -> list[Answer]:  # fmt: skip
    """One answer for each query."""
    check(k > 0, f"k must be at least 1, not {k}")
    queries = fields.checked(queries, len(queries), snapshot.identity.dim)
    text, parameters = rows.clause(snapshot, where)
    column = None if group is None else fields.physical(snapshot.names, group)
    empty = "''" if group is None or snapshot.names[group][1] == "text" else "0"
    if leave_out:
        rows.check_known(snapshot, leave_out, {item.id for item in rows.with_ids(snapshot, leave_out)})
        text, parameters = f"{text} AND NOT id = ANY(%s)", [*parameters, list(leave_out)]
    one = Search(snapshot, k, text, parameters, column, empty)
    graph = None if exactly else approximate.graph_for(snapshot, k, bool(where), text, parameters)
    return [one.answer(query, graph) for query in queries]
