"""The vectors of a store in segments ready for scanning, and the nearest items of a query among them.

A segment never changes once it is built; new items become a new segment, and neighbours of similar size are merged, so
that there are never more than a few. Removed items are masked until then.
"""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64

from lookalike.search.items import Vectors
from lookalike.search.scan import rounded as scan
from lookalike.search.scan.rounded import Rounded

Keys = Int64[np.ndarray, " keys"]
Places = Int64[np.ndarray, " m"]
Mask = Bool[np.ndarray, " n"]
NOTHING: Keys = np.empty(0, np.int64)
TOGETHER = 32  # queries in one pass over the items
SCRATCH = 1 << 24  # scores of one pass, at most
FEW = 50_000  # items that a filter leaves: scored exactly, without a scan


@dataclass(frozen=True)
class Segment:
    """Some items by rising key: their vectors, the same rounded, and the places of those removed since."""

    keys: Keys
    vectors: Vectors
    rounded: Rounded
    dead: Places = field(default_factory=lambda: NOTHING)
    name: str | None = None  # of its folder, where it is on disk

    def __len__(self) -> int:
        return len(self.keys)

    def without(self, removed: Int64[np.ndarray, " removed"]) -> "Segment":
        places = places_of(self.keys, removed)
        return self if not len(places) else replace(self, dead=np.union1d(self.dead, places))


def places_of(keys: Keys, some: Int64[np.ndarray, " some"]) -> Int64[np.ndarray, " there"]:
    """Where some keys stand among rising keys; those that are not there are passed over."""
    if not len(keys):
        return NOTHING
    places = np.minimum(np.searchsorted(keys, some), len(keys) - 1)
    return np.asarray(places[keys[places] == some])


def build(keys: Keys, vectors: Vectors, spherical: bool) -> Segment:
    return Segment(keys, vectors, scan.round_vectors(vectors, spherical))


def merge(segments: Sequence[Segment], spherical: bool) -> Segment | None:
    """One segment of all living items of several; None if none lives."""
    alive = [np.delete(np.arange(len(segment)), segment.dead) for segment in segments]
    if not sum(len(places) for places in alive):
        return None
    keys = np.concatenate([segment.keys[places] for segment, places in zip(segments, alive, strict=True)])
    vectors = np.concatenate([segment.vectors[places] for segment, places in zip(segments, alive, strict=True)])
    return build(keys, vectors, spherical)


def merged(segments: Sequence[Segment], spherical: bool) -> list[Segment]:
    """The segments with the last ones merged, so that each is more than twice as long as the next."""
    result = list(segments)
    while len(result) > 1 and 2 * len(result[-1]) >= len(result[-2]):
        whole = merge(result[-2:], spherical)
        result[-2:] = [] if whole is None else [whole]
    if result and 2 * len(result[-1].dead) > len(result[-1]):
        whole = merge(result[-1:], spherical)
        result[-1:] = [] if whole is None else [whole]
    return result


@dataclass(frozen=True)
class Candidates:
    """Keys and exact scores that hold the k best of a query and everything that ties with the last of them."""

    keys: Keys
    scores: Float64[np.ndarray, " m"]
    certified: bool


@dataclass(frozen=True)
class SegmentView:
    """Everything that can be found as of one change of the truth."""

    segments: tuple[Segment, ...]
    generation: int
    change: int
    token: str
    spherical: bool

    def __len__(self) -> int:
        return sum(len(segment) - len(segment.dead) for segment in self.segments)

    @property
    def last_key(self) -> int:
        return max((int(segment.keys[-1]) for segment in self.segments), default=0)

    def advanced(self, new: Segment | None, removed: Keys, change: int, token: str) -> "SegmentView":
        """The view after some more changes."""
        segments = [segment.without(removed) for segment in self.segments] + ([] if new is None else [new])
        return replace(self, segments=tuple(merged(segments, self.spherical)), change=change, token=token)

    def nearest(self, queries: Vectors, k: int, allowed: Keys | None = None) -> Iterator[Candidates]:
        """The k best of every query, in order; `allowed` are the rising keys that a filter leaves."""
        if allowed is not None and len(allowed) <= FEW:
            yield from (self._among(query, k, allowed) for query in queries)
            return
        masks = [self._mask(segment, allowed) for segment in self.segments]
        together = max(1, min(TOGETHER, SCRATCH // max(1, sum(map(len, self.segments)))))
        for start in range(0, len(queries), together):
            yield from self._pass(queries[start : start + together], k, masks)

    def _pass(self, queries: Vectors, k: int, masks: Sequence[np.ndarray]) -> list[Candidates]:
        """One pass over the items for some queries."""
        scores = _own.arrays(len(queries), [len(segment) for segment in self.segments])
        limits = [
            scan.rounded_scores(segment.rounded, queries, out)
            for segment, out in zip(self.segments, scores, strict=True)
        ]
        for hidden, out in zip(masks, scores, strict=True):
            out[:, hidden] = -np.inf
        living = [len(segment) - _count(hidden) for segment, hidden in zip(self.segments, masks, strict=True)]

        def answer(row: int) -> Candidates:
            parts = zip(self.segments, scores, limits, living, strict=True)
            scored = [
                _SegmentScores(segment, out[row], float(shifts[row]), float(bounds[row]), count)
                for segment, out, (shifts, bounds), count in parts
            ]
            return self._proven(queries[row], k, scored)

        return scan.for_each(answer, len(queries), sum(living))

    def _mask(self, segment: Segment, allowed: Keys | None) -> Mask | Places:
        """What is not looked at: places where it is little, a mask where it may be much."""
        if allowed is None:
            return segment.dead
        hidden = np.ones(len(segment), bool)
        hidden[places_of(segment.keys, allowed)] = False
        hidden[segment.dead] = True
        return hidden

    def _among(self, query: Float32[np.ndarray, " d"], k: int, allowed: Keys) -> Candidates:
        """The best of a few items: every one is scored exactly."""
        keys, scores = [], []
        for segment in self.segments:
            places = np.setdiff1d(places_of(segment.keys, allowed), segment.dead, assume_unique=True)
            keys.append(segment.keys[places])
            scores.append(scan.exact_scores(segment.vectors[places], query, self.spherical))
        return _best(keys, scores, k, certified=True)

    def _proven(self, query: Float32[np.ndarray, " d"], k: int, scored: Sequence["_SegmentScores"]) -> Candidates:
        """A first part at the best rounded scores; a second one, where rounding could still hide a better item."""
        places = [part.first(max(scan.SHORTLIST, 2 * k)) for part in scored]
        exact = [part.exact(near, query, self.spherical) for part, near in zip(scored, places, strict=True)]
        last = _last(exact, k)
        certified = True
        for number, part in enumerate(scored):
            if part.may_hide(places[number], last):
                certified = False
                places[number] = scan.places_above(part.scores, part.least(last))
                exact[number] = part.exact(places[number], query, self.spherical)
        return _best([part.segment.keys[near] for part, near in zip(scored, places, strict=True)], exact, k, certified)


class _Scratch(threading.local):
    """Room for scores, one per thread and used again: fetching it anew for every search takes as long as the scan."""

    room: Float32[np.ndarray, " room"] = np.empty(0, np.float32)

    def arrays(self, queries: int, lengths: Sequence[int]) -> list[np.ndarray]:
        if len(self.room) < queries * sum(lengths):
            self.room = np.empty(queries * sum(lengths), np.float32)
        ends = np.cumsum([queries * length for length in lengths]).tolist()
        return [
            self.room[end - queries * length : end].reshape(queries, length)
            for end, length in zip(ends, lengths, strict=True)
        ]


_own = _Scratch()


@dataclass(frozen=True)
class _SegmentScores:
    """The rounded scores of a segment for one query: −∞ for what is hidden, else see `scan.rounded_scores`."""

    segment: Segment
    scores: Float32[np.ndarray, " n"]
    shift: float
    bound: float
    living: int

    def first(self, count: int) -> Places:
        return scan.shortlist(self.scores, min(count, self.living)) if self.living else NOTHING

    def exact(self, places: Places, query: Float32[np.ndarray, " d"], spherical: bool) -> Float64[np.ndarray, " m"]:
        return scan.exact_scores(self.segment.vectors[places], query, spherical)

    def least(self, last: float) -> float:
        """No item with a lower rounded score has an exact one of `last`."""
        return last / self.segment.rounded.unit**2 - self.shift - self.bound

    def may_hide(self, places: Places, last: float) -> bool:
        return len(places) < self.living and float(self.scores[places].min(initial=np.inf)) >= self.least(last)


def _count(hidden: Mask | Places) -> int:
    return int(hidden.sum()) if hidden.dtype == bool else len(hidden)


def _last(scores: Sequence[np.ndarray], k: int) -> float:
    """The k-th best score; −∞ where there are fewer, which every living item reaches."""
    every = np.concatenate(scores) if scores else np.empty(0)
    return float(np.partition(every, len(every) - k)[len(every) - k]) if len(every) >= k else -np.inf


def _best(keys: Sequence[np.ndarray], scores: Sequence[np.ndarray], k: int, certified: bool) -> Candidates:
    """What reaches the k-th best score, ties included."""
    if not keys:
        return Candidates(NOTHING, np.empty(0), certified)
    last = _last(scores, k)
    every, names = np.concatenate(scores), np.concatenate(keys)
    return Candidates(names[every >= last], every[every >= last], certified)
