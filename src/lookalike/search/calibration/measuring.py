"""Calibrating an index: with labelled images, or with its own items, each of which is taken out in turn."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from lookalike.errors import check
from lookalike.evaluation.statistics import bootstrap
from lookalike.progress import Progress, Stage
from lookalike.search.adding.encoding import Encode
from lookalike.search.adding.sources import Entry, Listing, Source, listing
from lookalike.search.adding.update import BATCH
from lookalike.search.calibration import kept, thresholds
from lookalike.search.calibration.foreign import Familiar, pictures
from lookalike.search.calibration.pooling import compare_pooling
from lookalike.search.calibration.thresholds import Calibration
from lookalike.search.calibration.trials import (
    ALL,
    DEPTH,
    STATES,
    TOGETHER,
    Gallery,
    TrialBatch,
    TrialNeighbours,
    Trials,
    best_rule,
    draw,
    judged,
    shuffled,
    spread,
)
from lookalike.search.classifying import readable
from lookalike.search.filters import Condition, Filter
from lookalike.search.items import Item, Vectors
from lookalike.search.quality import FLIP, POOLED, Quality, Trial
from lookalike.search.queries import means
from lookalike.search.stores import GenerationError, Store, complete
from lookalike.search.stores.copying import UPGRADE
from lookalike.search.thing_column import texts
from lookalike.search.things import called
from lookalike.search.watching.reference import WATCHED, Reference, reference

if TYPE_CHECKING:
    from lookalike.search.index import Index

MOST = 1000  # items that are asked where an index is calibrated with its own


@dataclass(frozen=True)
class Queries:
    """Labelled images as vectors, plain and as the mean with their mirror image (None: they were not embedded)."""

    vectors: Vectors
    flipped: Vectors | None
    labels: Sequence[str]
    itself: Sequence[str | None]  # the id under which each is in the index


@dataclass(frozen=True)
class Calibrated:
    """What calibration found."""

    calibration: Calibration
    quality: Quality
    compared: Sequence[Trial]
    absent: int = 0  # classes of the images that are not in the index


def calibrate(
    index: "Index", encode: Encode, source: Source | None, precision: float | None, plain: bool, stage: Stage
) -> Calibrated:
    """Measure what answers of an index mean, and keep it with it; see `Index.calibrate`."""
    store, thing, identity = index.store, index.thing, index.identity
    unfinished = store.documents.read(UPGRADE) is not None and store.generations.mapped_count()
    check(
        not unfinished, "items are still being embedded again, which changes similarities: let lookalike upgrade finish"
    )
    listed = [called(item, thing) for item in store.listed(named(thing))]
    check(bool(listed), "the items of this index have no labels, so no answer could be right: add labelled ones")
    if source is None:
        queries = own_queries(store, listed)
    else:
        entries = labelled(listing(source, texts(store)), thing)
        check_classes(entries, listed)
        queries = queries_of(entries, store, encode, stage("embedding the images"))
    taught = set() if identity.fingerprint is None else set(index.model.classes)
    outside = None if identity.fingerprint is None else encode(pictures())
    seen = not taught.isdisjoint(queries.labels)
    result = run(store, queries, listed, precision, seen, stage, plain, thing, outside)
    if index.identity.generation != identity.generation:
        raise GenerationError
    kept.write(store, result.calibration)
    kept.write(store, result.quality)
    ordinary = ordinary_queries(index, queries, stage("looking at ordinary queries"))
    kept.drop(store, Reference) if ordinary is None else kept.write(store, ordinary)
    index.note("calibrated", precision=result.calibration.target)
    return result


def named(thing: str | None) -> Filter:
    """The items that are of a thing, or have a label where there are no things."""
    return (Condition(thing or "label", "!=", (None,)),)


def queries_of(entries: Sequence[Entry], store: Store, encode: Encode, progress: Progress | None) -> Queries:
    """The readable ones of labelled images as vectors, with those of their mirror images."""
    plain, mirrored, labels, itself = [], [], [], []
    for start in range(0, len(entries), BATCH):
        read = [(entry.item, readable(entry)) for entry in entries[start : start + BATCH]]
        batch = [(item, pixels) for item, pixels in read if pixels is not None]
        for item, _ in batch:
            labels.append(str(item.label))
            same = store.at_paths([item.path]) if item.path is not None else {}
            itself.append(next((other.id for other in same.values()), None))
        if batch:
            plain.append(encode([pixels for _, pixels in batch]))
            mirrored.append(encode([pixels.flip(2) for _, pixels in batch]))
        if progress is not None:
            progress(min(start + BATCH, len(entries)), len(entries))
    check(bool(plain), "none of the images can be read")
    vectors = np.concatenate(plain)
    flipped = means([vectors, np.concatenate(mirrored)], store.identity.geometry)
    return Queries(vectors, flipped, labels, itself)


def own_queries(store: Store, listed: Sequence[Item]) -> Queries:
    """Items of the index, evenly spread over it."""
    rows = spread(len(listed), MOST)
    ids = [listed[row].id for row in rows]
    return Queries(store.vectors(ids), None, [str(listed[row].label) for row in rows], ids)


def run(
    store: Store,
    queries: Queries,
    listed: Sequence[Item],
    precision: float | None,
    seen_in_training: bool,
    stage: Stage,
    plain: bool = False,
    thing: str | None = None,
    outside: Vectors | None = None,
) -> Calibrated:
    """Compare plain search with flipped queries and pooled photos; measure chances with what gains.

    `listed` are the labelled items of the index, in the order of their ids; `thing`: the column that labels came from,
    where it has things; `outside`: vectors of pictures that are like nothing, where there is a network.
    """
    places = {item.id: place for place, item in enumerate(listed)}
    names = {name: code for code, name in enumerate(dict.fromkeys(str(item.label) for item in listed))}
    classes = np.array([names[str(item.label)] for item in listed], np.int64)
    gallery = Gallery(classes, lambda rows: store.vectors([listed[row].id for row in rows]), store.identity.geometry)

    def hits_of(vectors: Vectors, name: str) -> TrialNeighbours:
        return neighbours(store, vectors, queries, places, names, stage(name), named(thing))

    near = hits_of(queries.vectors, "asking every image")
    batches = draw(near, gallery)
    compared, quality = [], Quality()
    if queries.flipped is not None:
        mirrored = hits_of(queries.flipped, "asking with mirror images")
        flipped = draw(mirrored, gallery)
        compared = compare(batches, flipped)
        if compared[-1].kept and not plain:
            near, batches, quality = mirrored, flipped, Quality(flip=True)
    if thing is not None:
        pooling = compare_pooling(near, gallery)
        compared = [*compared, *pooling]
        if pooling and pooling[-1].kept and not plain:
            quality = replace(quality, pooled=POOLED)
    vectors = queries.flipped if quality.flip and queries.flipped is not None else queries.vectors
    calibration = thresholds.calibrate(
        batches,
        precision,
        None if outside is None else Familiar.of(vectors, near.classes[: len(vectors)], outside),
        items=len(listed),
        generation=store.identity.generation,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        source="index" if queries.flipped is None else "data",
        seen_in_training=seen_in_training,
    )
    return Calibrated(calibration, quality, compared, len(set(queries.labels) - set(names)))


def ordinary_queries(index: "Index", queries: Queries, progress: Progress | None) -> Reference | None:
    """What ordinary queries look like, for `serve` to watch; None where there are too few classes to tell."""
    flipped = queries.flipped if index.quality.flip else None
    vectors = queries.vectors if flipped is None else flipped
    rows = np.random.default_rng(0).permutation(len(vectors))[:WATCHED]
    similarities, answered = [], []
    for done, row in enumerate(rows.tolist(), start=1):
        itself = queries.itself[row]
        hits = index.answer(vectors[row : row + 1], 1, leave_out=() if itself is None else [itself]).hits
        if hits:
            similarities.append(hits[0].similarity)
            answered.append(row)
        if progress is not None:
            progress(done, len(rows))
    _, items = next(index.store.scan(), ([], vectors[:0]))
    return reference(items, vectors[answered], similarities, [queries.labels[row] for row in answered])


def neighbours(
    store: Store,
    vectors: Vectors,
    queries: Queries,
    places: Mapping[str, int],
    names: Mapping[str, int],
    progress: Progress | None,
    labelled: Filter,
) -> TrialNeighbours:
    """The first hits of every query, and of vectors that look like nothing; an answer of all shards."""
    strangers = shuffled(vectors, store.identity.geometry)
    every = np.concatenate([vectors, strangers])
    itself = np.array([places.get(str(id_), -1) for id_ in queries.itself] + [-1] * len(strangers), np.int64)
    codes = dict(names)
    known = [codes.setdefault(label, len(codes)) for label in queries.labels]
    similarities = np.full((len(every), DEPTH + 1), -np.inf)
    found = np.zeros((len(every), DEPTH + 1), np.int64)
    where = labelled if store.count(labelled) < store.count() else ()
    for start in range(0, len(every), TOGETHER):
        answers = complete(store.search(every[start : start + TOGETHER], DEPTH + 1, where))
        for row, answer in enumerate(answers, start):
            hits = [(hit.similarity, places[hit.id]) for hit in answer.hits if hit.id in places]
            for column, (similarity, place) in enumerate(hits):
                similarities[row, column] = similarity if place != itself[row] else -np.inf
                found[row, column] = place
        if progress is not None:
            progress(min(start + TOGETHER, len(every)), len(every))
    classes = np.array([*known, *(-1 - np.arange(len(strangers)))], np.int64)
    return TrialNeighbours(similarities, found, classes, itself)


def compare(
    plain: Sequence[TrialBatch],
    others: Sequence[TrialBatch],
    name: str = FLIP,
) -> list[Trial]:
    """Another way to search beside the plain one: kept where labels gain beyond the noise and no size loses."""
    base, other = (_present(batches) for batches in (plain, others))
    sizes = {("all" if size == ALL else str(size)): base.photos == size for size in STATES[1:]}
    gain = other.right.astype(float) - base.right
    by_size = {size: float(gain[some].mean()) for size, some in sizes.items() if some.any()}
    interval = bootstrap.interval(gain, [str(name) for name in base.classes])
    kept = interval[0] > 0 and min(by_size.values()) >= 0
    recalls = [float(trials.right.mean()) for trials in (base, other)]
    return [
        Trial("plain search", recalls[0], 0.0, (0.0, 0.0), {}, True),
        Trial(name, recalls[1], float(gain.mean()), interval, by_size, kept),
    ]


def _present(batches: Sequence[TrialBatch]) -> Trials:
    """The trials whose class is there, in an order that does not depend on what was found."""
    trials = judged(batches, best_rule(batches))
    order = np.lexsort((trials.queries, trials.photos))
    return trials.take(order[(trials.present & trials.whole)[order]])


def labelled(found: Listing, thing: str | None) -> list[Entry]:
    """Images with one label each, to calibrate with; the label is the thing that they show, where there are things."""
    if thing is not None:
        named = [replace(entry, item=called(entry.item, thing)) for entry in found.entries]
        known = [entry for entry in named if entry.item.label is not None]
        check(bool(known), f"no image of '{found.root}' has a '{thing}', by which this index knows things: add it")
        return known
    check(
        not found.several,
        f"the images of '{found.root}' have several labels, or none: calibrate with images of one label each",
    )
    labelled = [entry for entry in found.entries if entry.item.label is not None]
    check(bool(labelled), f"the images of '{found.root}' have no labels: calibrate with one folder per class")
    return labelled


def check_classes(entries: Sequence[Entry], listed: Sequence[Item]) -> None:
    """Refuse images none of whose classes is in the index, before they are embedded."""
    given = {str(entry.item.label) for entry in entries}
    check(
        not given.isdisjoint(str(item.label) for item in listed),
        f"no class of these images is in the index (it has no '{min(given)}'), so no answer could be right: "
        "calibrate with further images of its classes, or without images: then its own items are asked",
    )
