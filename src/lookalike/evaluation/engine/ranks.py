"""The result of counting, and how ties are read: where the relevant items of each query stand in its ranking.

With `over` irrelevant items clearly above a relevant item and `upto` above it or tied with it, the i-th relevant item
stands at i + upto (pessimistic) or i + over (optimistic). Expected means the expectation of the metric itself over all
orders of the tied items (McSherry & Najork, Computing Information Retrieval Performance Measures Efficiently in the
Presence of Tied Scores, ECIR 2008): relevant items that share a tied irrelevant item form one group, in random order.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from lookalike.errors import unknown
from lookalike.evaluation.inputs import Codes

Ties = Literal["pessimistic", "optimistic", "expected"]
Values = NDArray[np.float64]
LONG = 64  # groups of a query, on average


def check_ties(ties: str) -> None:
    if ties not in get_args(Ties):
        raise unknown("ties", ties, get_args(Ties))


@dataclass(frozen=True)
class Gains:
    """What each relevant item is worth to ndcg, the nearest first; `apart`: it is not tied with the one before it."""

    values: Values
    apart: NDArray[np.bool_]

    def ordered(self, query: Codes, ties: Ties) -> Values:
        """Among tied items the least first (pessimistic), the most (optimistic), or the mean for all (expected)."""
        fresh = self.apart | np.r_[True, query[1:] != query[:-1]]
        run = np.cumsum(fresh) - 1
        if ties == "expected":
            means: Values = np.bincount(run, weights=self.values) / np.bincount(run)
            return np.asarray(means[run])
        return self.values[np.lexsort((self.values if ties == "pessimistic" else -self.values, run))]

    def ideal(self, query: Codes) -> Values:
        """The best order of all: the most first."""
        return self.values[np.lexsort((-self.values, query))]


@dataclass(frozen=True)
class RelevantRanks:
    """The best `kept[k]` of `counts[k]` relevant items of query `queries[k]` follow each other in `over` and `upto`."""

    queries: Codes
    counts: Codes
    kept: Codes
    size: Codes  # gallery items that the query may see
    over: Codes
    upto: Codes
    gains: Gains | None = None

    def tied(self) -> NDArray[np.bool_]:
        """Whether a kept relevant item of the query is tied with an irrelevant one."""
        tied = np.flatnonzero(self.over != self.upto)
        owner = np.searchsorted(np.cumsum(self.kept), tied, side="right")
        return np.bincount(owner, minlength=len(self.counts)) > 0


@dataclass(frozen=True)
class Order:
    """Groups of `relevant` items tied with `others` irrelevant ones, after `before` items of which `hits` are relevant.

    Without ties, or once they are resolved, a group is one relevant item at rank `before` + 1.
    """

    counts: Codes  # relevant items per query, R_q
    size: Codes
    query: Codes  # per group, from here on
    before: Codes
    hits: Codes
    relevant: Codes
    others: Codes

    plain: bool = True  # no group is tied
    gains: Values | None = None  # of each group, where relevance is graded
    ideal: Values | None = None  # of all relevant items, query by query, the most first
    known: dict[int, Values] = field(default_factory=dict)

    def per_query(self, values: Values) -> Values:
        """Sums over the groups of each query."""
        return np.bincount(self.query, weights=values, minlength=len(self.counts)).astype(np.float64, copy=False)

    @cached_property
    def precisions(self) -> Values:
        """P@rank at every relevant item, without ties."""
        return (self.hits + 1) / (self.before + 1)

    def within(self, k: int) -> "Order":
        """Only the groups that begin among the first k: all that a metric at K ≤ k needs, and often far fewer."""
        near = np.flatnonzero(self.before < k)
        query, before, hits = self.query[near], self.before[near], self.hits[near]
        gains = None if self.gains is None else self.gains[near]
        relevant, others = self.relevant[near], self.others[near]
        return Order(self.counts, self.size, query, before, hits, relevant, others, self.plain, gains, self.ideal)

    @cached_property
    def bounds(self) -> Codes:
        """Where the groups of each query begin, and where the last ones end."""
        return np.searchsorted(self.query, np.arange(len(self.counts) + 1))

    @property
    def long(self) -> bool:
        """Whether bisecting the groups of a query is cheaper than looking at each."""
        return len(self.query) > LONG * len(self.counts)

    def reach(self, k: int | Codes) -> Codes:
        """Where the groups of each query end that begin among its first k: they are in order, so it is bisected."""
        low, high = self.bounds[:-1], self.bounds[1:]
        while (low < high).any():
            middle = (low + high) // 2
            inside = (low < high) & (self.before[np.minimum(middle, len(self.before) - 1)] < k)
            low, high = np.where(inside, middle + 1, low), np.where(inside, high, np.minimum(middle, high))
        return low

    def precisions_within(self, k: int | Codes) -> Values:
        """Σ of P@rank over the relevant items among the first k of each query, without ties."""
        if not self.long:
            limit = k if isinstance(k, int) else k[self.query]
            return self.per_query(np.where(self.before < limit, self.precisions, 0.0))
        starts, ends = self.bounds[:-1], self.reach(k)
        sums, some = np.zeros(len(starts)), ends > starts
        if some.any():
            cuts = np.stack((starts[some], ends[some]), 1).reshape(-1)
            sums[some] = np.add.reduceat(self.precisions, cuts[:-1] if cuts[-1] == len(self.query) else cuts)[::2]
        return sums

    def hits_within(self, k: int | Codes) -> Values:
        """Expected number of relevant items among the first k; k may differ from query to query."""
        if isinstance(k, int) and k in self.known:
            return self.known[k]
        inside = None if self.plain and self.long else (k if isinstance(k, int) else k[self.query]) - self.before
        if inside is None:
            hits = (self.reach(k) - self.bounds[:-1]).astype(np.float64)
        elif self.plain:
            hits = np.bincount(self.query[inside > 0], minlength=len(self.counts)).astype(np.float64)
        else:
            members = self.relevant + self.others
            hits = self.per_query(np.clip(inside, 0, members).astype(np.float64) * (self.relevant / members))
        if isinstance(k, int):
            self.known[k] = hits
        return hits

    def first(self) -> Codes:
        """The first group of every query."""
        return np.flatnonzero(np.r_[True, self.query[1:] != self.query[:-1]])


def order(ranks: RelevantRanks, ties: Ties) -> Order:
    """The ranking of each query under a rule for ties. Queries without a relevant item must have been dropped.

    >>> two = np.array([2])
    >>> ranks = RelevantRanks(np.array([0]), two, two, np.array([9]), np.array([0, 3]), np.array([2, 3]))
    >>> (order(ranks, "pessimistic").before + 1).tolist(), (order(ranks, "optimistic").before + 1).tolist()
    ([3, 5], [1, 5])
    """
    query = np.repeat(np.arange(len(ranks.kept)), ranks.kept)
    begins = np.cumsum(ranks.kept) - ranks.kept
    index = np.arange(len(query)) - begins[query]
    gains, ideal = None, None
    if ranks.gains is not None:
        gains, ideal = ranks.gains.ordered(query, ties), ranks.gains.ideal(query)
    if ties != "expected":
        before: Codes = index + (ranks.upto if ties == "pessimistic" else ranks.over)
        one, none = (np.broadcast_to(np.int64(each), index.shape) for each in (1, 0))
        return Order(ranks.counts, ranks.size, query, before, index, one, none, gains=gains, ideal=ideal)
    fresh = np.ones(len(query), np.bool_)
    fresh[1:] = (index[1:] == 0) | (ranks.over[1:] >= ranks.upto[:-1])
    start = np.flatnonzero(fresh)
    last = np.r_[start[1:], len(query)] - 1
    hits, over = index[start], ranks.over[start]
    others = ranks.upto[last] - over
    plain = not others.any()
    if gains is not None:
        gains = np.add.reduceat(gains, start)
    members = last - start + 1
    return Order(ranks.counts, ranks.size, query[start], hits + over, hits, members, others, plain, gains, ideal)
