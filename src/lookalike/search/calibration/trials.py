"""Questions whose answer is known: every class in turn is absent, has one photo, three, or all of them.

The classes of a gallery take turns: at any time one in eight is absent, one in eight has a single photo and one in
eight three, the others have all. A photo is asked once in each state of its class, without itself. The same is done
with half of the classes, which tells what a larger gallery costs. Vectors whose coordinates are shuffled between items
look like nothing there is: they stand for strangers.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64

from lookalike.geometry import Geometry
from lookalike.search.calibration.evidence import HITS, Evidence, Rule, SeenHits, densities, mutual_similarities, read
from lookalike.search.items import Vectors

TOGETHER = 64  # queries scored at once
DEPTH = 300  # hits among which those of a reduced gallery are
ALL = 10**9
STATES = (0, 1, 3, ALL)  # photos of a class
TURNS = (*STATES, ALL, ALL, ALL, ALL)
ALONE = 800  # photos that stand alone for their class, in all rounds; these are at least and at most
ROUNDS = (4, 16)
ABSENT = 0.5  # the weight of trials whose class is absent; the other states share the rest
SHARPNESS = (1.5, 3.0, 6.0)  # over the median fall of similarity from the first hit to the last
EVENNESS = (0.5, 0.75, 1.0)
NEAREST = Rule(1e3, 0.0)
STRANGERS = 400


@dataclass(frozen=True)
class TrialNeighbours:
    """The first hits of n queries in a whole gallery: similarities (−∞: none) and places of items."""

    similarities: Float64[np.ndarray, "n depth"]
    places: Int64[np.ndarray, "n depth"]
    classes: Int64[np.ndarray, " n"]  # below 0: a stranger; beyond those of the gallery: always absent
    itself: Int64[np.ndarray, " n"]  # the place under which it is there; -1: it is not


@dataclass(frozen=True)
class Gallery:
    """Items by place: their classes, and the vectors of some of them."""

    classes: Int64[np.ndarray, " items"]
    vectors: Callable[[Int64[np.ndarray, " some"]], Vectors]
    geometry: Geometry


@dataclass(frozen=True)
class TrialBatch:
    """Trials with equally many hits each."""

    seen: SeenHits
    queries: Int64[np.ndarray, " n"]
    classes: Int64[np.ndarray, " n"]
    photos: Int64[np.ndarray, " n"]  # of the class, that could be found
    whole: bool  # all classes took part


@dataclass(frozen=True)
class Trials:
    """Every trial, with what its hits say by a rule."""

    evidence: Evidence
    similarities: Float64[np.ndarray, " n"]  # of the best hit
    queries: Int64[np.ndarray, " n"]
    classes: Int64[np.ndarray, " n"]
    nearest: Int64[np.ndarray, " n"]  # the class of the best hit
    answers: Int64[np.ndarray, " n"]  # the label
    seconds: Int64[np.ndarray, " n"]  # the next one, or -1
    photos: Int64[np.ndarray, " n"]
    whole: Bool[np.ndarray, " n"]

    @property
    def right(self) -> Bool[np.ndarray, " n"]:
        return np.asarray(self.answers == self.classes)

    @property
    def present(self) -> Bool[np.ndarray, " n"]:
        return np.asarray(self.photos > 0)

    @property
    def weights(self) -> Float64[np.ndarray, " n"]:
        """Half of the weight for absent classes, the rest in equal parts for the sizes; 1 on average."""
        weights = np.zeros(len(self.photos))
        for state in STATES:
            some = self.photos == state
            weights[some] = (ABSENT if state == 0 else (1 - ABSENT) / (len(STATES) - 1)) / max(1, int(some.sum()))
        return np.asarray(weights / weights.mean())

    def take(self, rows: Bool[np.ndarray, " n"] | Int64[np.ndarray, " some"]) -> "Trials":
        return Trials(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


def draw(near: TrialNeighbours, gallery: Gallery, seed: int = 0) -> list[TrialBatch]:
    """The trials of all queries, in the whole gallery and in two halves of its classes.

    Each round asks some of the queries; other photos stand for a class in it, and the halves are others. What one photo
    of a class is worth depends on the photo: with few classes, a single round would tell of those few photos.
    """
    generator = np.random.default_rng(seed)
    names = np.unique(gallery.classes)
    absent = (near.classes < 0) | (near.classes > names.max())
    rounds = int(np.clip(ALONE // len(names), *ROUNDS))
    batches: list[TrialBatch] = []
    for first in range(rounds):
        rows = np.arange(first, len(near.classes), rounds)
        names, middle, ranks = generator.permutation(names), len(names) // 2, _ranks(gallery.classes, generator)
        for some, whole in ((names, True), (names[:middle], False), (names[middle:], False)):
            if not len(some):
                continue
            for turn in range(len(TURNS)):
                number = np.full(int(names.max()) + 1, len(TURNS))  # of a class's turn; beyond: it is left out
                number[some] = (np.arange(len(some)) + turn) % len(TURNS)
                photos = np.array([*TURNS, 0])[number]
                kept = ranks < photos[gallery.classes]
                batches += _of_due_classes(near, gallery, kept, photos, number < len(STATES), whole, rows)
            batches += _hits(near, gallery, np.isin(gallery.classes, some), rows[absent[rows]], whole, 0)
    return merged(batches)


def merged(batches: Sequence[TrialBatch]) -> list[TrialBatch]:
    """As few batches as there are kinds of trials: with equally many hits, in one state, of classes or strangers."""
    kinds: dict[tuple[int, int, bool, bool], list[TrialBatch]] = {}
    for batch in batches:
        kind = batch.seen.labels.shape[1], int(batch.photos[0]), bool(batch.classes[0] < 0), batch.whole
        kinds.setdefault(kind, []).append(batch)
    return [
        TrialBatch(
            SeenHits(*(_joined([one.seen for one in some], name) for name in SeenHits.__dataclass_fields__)),
            _joined(some, "queries"),
            _joined(some, "classes"),
            _joined(some, "photos"),
            kind[-1],
        )
        for kind, some in kinds.items()
    ]


def _joined(parts: Sequence[Any], name: str) -> Any:
    return np.concatenate([getattr(part, name) for part in parts])


def _ranks(classes: Int64[np.ndarray, " items"], generator: np.random.Generator) -> Int64[np.ndarray, " items"]:
    """Every item's place in a random order of its class."""
    order = np.lexsort((generator.random(len(classes)), classes))
    ranks = np.empty(len(classes), np.int64)
    ranks[order] = np.arange(len(classes)) - np.searchsorted(classes[order], classes[order])
    return ranks


def _of_due_classes(
    near: TrialNeighbours,
    gallery: Gallery,
    kept: Bool[np.ndarray, " items"],
    photos: Int64[np.ndarray, " classes"],
    due: Bool[np.ndarray, " classes"],
    whole: bool,
    rows: Int64[np.ndarray, " some"],
) -> Iterator[TrialBatch]:
    """Those queries whose class is due, by how many photos it has; none whose own photo is needed."""
    known = rows[(near.classes[rows] >= 0) & (near.classes[rows] < len(due))]
    known = known[due[near.classes[known]]]
    own = (near.itself[known] >= 0) & kept[near.itself[known]]
    state = photos[near.classes[known]]
    left = np.bincount(gallery.classes[kept], minlength=len(photos))[near.classes[known]] - own
    fair = (state == 0) | ((left > 0) & (~own | (state == ALL)))
    for number in STATES:
        yield from _hits(near, gallery, kept, known[fair & (state == number)], whole, number)


def _hits(
    near: TrialNeighbours,
    gallery: Gallery,
    kept: Bool[np.ndarray, " items"],
    rows: Int64[np.ndarray, " some"],
    whole: bool,
    photos: int,
) -> Iterator[TrialBatch]:
    """What queries find among the items that are kept."""
    found = kept[near.places[rows]] & np.isfinite(near.similarities[rows])
    found &= found.cumsum(1) <= HITS
    counts = found.sum(1)
    sizes = np.bincount(gallery.classes[kept], minlength=int(gallery.classes.max()) + 1)
    for count in np.unique(counts[counts > 0]):
        some = rows[counts == count]
        at = np.nonzero(found[counts == count])[1].reshape(-1, count)
        places = np.take_along_axis(near.places[some], at, 1)
        labels, own = gallery.classes[places], near.classes[some]
        itself = (near.itself[some] >= 0) & kept[near.itself[some]]
        seen = SeenHits(
            np.take_along_axis(near.similarities[some], at, 1),
            labels,
            (sizes[labels] - ((labels == own[:, None]) & itself[:, None])).astype(np.float64),
            _mutual(places, gallery),
            np.full(len(some), float(kept.sum())),
        )
        yield TrialBatch(seen, some, own, np.full(len(some), photos), whole)


def _mutual(places: Int64[np.ndarray, "n k"], gallery: Gallery) -> Float64[np.ndarray, "n k k"]:
    parts = []
    for start in range(0, len(places), TOGETHER):
        some, inverse = np.unique(places[start : start + TOGETHER], return_inverse=True)
        vectors = gallery.vectors(some)[inverse.reshape(-1, places.shape[1])]
        parts.append(mutual_similarities(vectors, gallery.geometry))
    return np.concatenate(parts)


def best_rule(batches: Sequence[TrialBatch]) -> Rule:
    """The rule by which most labels are right, averaged over sizes of classes; none of them may lose by it."""
    known = [batch for batch in batches if batch.classes[0] >= 0 and batch.photos[0] > 0]
    falls = np.concatenate([batch.seen.similarities[:, 0] - batch.seen.similarities[:, -1] for batch in known])
    fall = max(float(np.median(falls)), 1e-6)
    plain = _right_by_size(known, NEAREST)
    best, gain = Rule(NEAREST.sharpness / fall, 0.0), 0.0
    for rule in (Rule(sharpness / fall, evenness) for sharpness in SHARPNESS for evenness in EVENNESS):
        differences = _right_by_size(known, rule) - plain
        if differences.min() >= 0 and differences.mean() > gain:
            best, gain = rule, float(differences.mean())
    return best


def _right_by_size(batches: Sequence[TrialBatch], rule: Rule) -> Float64[np.ndarray, " sizes"]:
    right = {state: [0, 0] for state in STATES[1:]}
    for batch in batches:
        row = np.arange(len(batch.classes))
        answers = batch.seen.labels[row, densities(batch.seen, rule).argmax(1)]
        right[int(batch.photos[0])][0] += int((answers == batch.classes).sum())
        right[int(batch.photos[0])][1] += len(row)
    return np.array([number / total for number, total in right.values() if total])


def judged(batches: Sequence[TrialBatch], rule: Rule | None) -> Trials:
    """All trials, read by a rule, or by the nearest hit."""
    readings = [read(batch.seen, rule) for batch in batches]
    labels = [
        np.take_along_axis(batch.seen.labels, np.stack([reading.place, reading.second], 1), 1)
        for batch, reading in zip(batches, readings, strict=True)
    ]
    return Trials(
        np.concatenate([reading.evidence for reading in readings]),
        np.concatenate([batch.seen.similarities[:, 0] for batch in batches]),
        np.concatenate([batch.queries for batch in batches]),
        np.concatenate([batch.classes for batch in batches]),
        np.concatenate([batch.seen.labels[:, 0] for batch in batches]),
        np.concatenate([pair[:, 0] for pair in labels]),
        np.concatenate(
            [np.where(reading.second < 0, -1, pair[:, 1]) for pair, reading in zip(labels, readings, strict=True)]
        ),
        np.concatenate([batch.photos for batch in batches]),
        np.concatenate([np.full(len(batch.classes), batch.whole) for batch in batches]),
    )


def among_themselves(vectors: Vectors, labels: Sequence[str], most: int | None = None) -> list[TrialBatch]:
    """Trials of every image (or `most`, evenly spread) against the others on the sphere."""
    codes = np.unique(np.array(labels, dtype=object).astype(str), return_inverse=True)[1].astype(np.int64)
    chosen = spread(len(vectors), most)
    strangers = shuffled(vectors, "sphere")
    queries = np.concatenate([vectors[chosen], strangers])
    itself = np.concatenate([chosen, np.full(len(strangers), -1)])
    similarities, places = [], []
    for start in range(0, len(queries), TOGETHER):
        scores = (queries[start : start + TOGETHER] @ vectors.T).astype(np.float64)
        own = itself[start : start + TOGETHER]
        scores[np.flatnonzero(own >= 0), own[own >= 0]] = -np.inf
        depth = min(DEPTH, scores.shape[1])
        some = np.sort(np.argpartition(-scores, depth - 1, axis=1)[:, :depth], axis=1)
        order = np.argsort(-np.take_along_axis(scores, some, 1), axis=1, kind="stable")
        places.append(np.take_along_axis(some, order, 1))
        similarities.append(np.take_along_axis(scores, places[-1], 1))
    classes = np.concatenate([codes[chosen], -1 - np.arange(len(strangers))])
    near = TrialNeighbours(np.concatenate(similarities), np.concatenate(places), classes, itself)
    return draw(near, Gallery(codes, lambda rows: vectors[rows], "sphere"))


def spread(number: int, most: int | None) -> Int64[np.ndarray, " some"]:
    """The places of `most` of so many things, evenly spread; of all of them without it."""
    return np.unique(np.linspace(0, number - 1, number if most is None else min(most, number)).astype(np.int64))


def shuffled(vectors: Float32[np.ndarray, "n d"], geometry: Geometry) -> Float32[np.ndarray, "some d"]:
    """Vectors of nothing: each coordinate comes from another item."""
    generator = np.random.default_rng(0)
    mixed = generator.permuted(vectors[generator.permutation(len(vectors))[:STRANGERS]], axis=0)
    length = np.maximum(np.linalg.norm(mixed, axis=1, keepdims=True), 1e-12)
    return np.asarray(mixed / length if geometry == "sphere" else mixed, np.float32)
