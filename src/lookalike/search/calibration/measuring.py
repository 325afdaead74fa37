"""Calibrating an index with labelled images: which ways to better answers gain, and what a similarity then means."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, get_args

import numpy as np

from lookalike.errors import check
from lookalike.evaluation.statistics import bootstrap
from lookalike.search import quality as ways
from lookalike.search.adding.sources import Entry
from lookalike.search.adding.update import BATCH, Encode
from lookalike.search.calibration import trials
from lookalike.search.calibration.evidence import HITS, of_hits
from lookalike.search.calibration.thresholds import Calibration, calibrate
from lookalike.search.calibration.trials import Trials
from lookalike.search.classifying import readable
from lookalike.search.filters import Condition, Filter
from lookalike.search.items import Answer, Hit, Vectors
from lookalike.search.quality import CANDIDATES, DEPTH, Quality, Trial, improved, label_of
from lookalike.search.queries import means
from lookalike.search.stores import Store, complete

MOST = 500  # queries that candidates are compared on
Progress = Callable[[int, int], None]
Stage = Callable[[str], Progress | None]


@dataclass(frozen=True)
class Queries:
    """Labelled images as vectors, plain and as the mean with their mirror image."""

    vectors: Vectors
    flipped: Vectors
    labels: Sequence[str]
    itself: Sequence[Sequence[str]]  # the ids under which each is in the index

    def take(self, rows: Any) -> "Queries":
        places = [int(row) for row in rows]
        return Queries(
            self.vectors[places],
            self.flipped[places],
            [self.labels[row] for row in places],
            [self.itself[row] for row in places],
        )


def queries_of(entries: Sequence[Entry], store: Store, encode: Encode, progress: Progress | None) -> Queries:
    """The readable ones of labelled images as vectors, with those of their mirror images."""
    plain, mirrored, labels, itself = [], [], [], []
    for start in range(0, len(entries), BATCH):
        read = [(entry.item, readable(entry)) for entry in entries[start : start + BATCH]]
        batch = [(item, pixels) for item, pixels in read if pixels is not None]
        for item, _ in batch:
            labels.append(str(item.label))
            same = store.at_paths([item.path]) if item.path is not None else {}
            itself.append([other.id for other in same.values()])
        if batch:
            plain.append(encode([pixels for _, pixels in batch]))
            mirrored.append(encode([pixels.flip(2) for _, pixels in batch]))
        if progress is not None:
            progress(min(start + BATCH, len(entries)), len(entries))
    check(bool(plain), "none of the images can be read")
    vectors = np.concatenate(plain)
    return Queries(vectors, means([vectors, np.concatenate(mirrored)], store.identity.geometry), labels, itself)


@dataclass(frozen=True)
class Calibrated:
    """What calibration found."""

    calibration: Calibration
    quality: Quality
    compared: Sequence[Trial]


def run(
    store: Store, queries: Queries, precision: float, seen_in_training: bool, stage: Stage, plain: bool = False
) -> Calibrated:
    """Compare the candidates, keep what gains, and measure thresholds with that."""
    sizes = Counter(item.label for item in store.listed(trials.LABELLED) if item.label is not None)
    answerable = [row for row, label in enumerate(queries.labels) if sizes[label] > len(queries.itself[row])]
    check(
        bool(answerable),
        "no class of these images is in the index, so no answer could be right: calibrate with images of its classes",
    )
    sample = np.random.default_rng(0).permutation(answerable)[:MOST]
    compared, quality = compare(store, queries.take(np.sort(sample)), sizes, stage("comparing ways to search"))
    quality = Quality(rule=quality.rule) if plain else quality
    measured = ask(store, queries, quality, stage("asking every image"))
    identity = store.identity
    calibration = calibrate(
        measured,
        precision,
        items=store.count(),
        generation=identity.generation,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        source="index",
        seen_in_training=seen_in_training,
    )
    return Calibrated(calibration, quality, compared)


def compare(
    store: Store, queries: Queries, sizes: Counter[str], progress: Progress | None
) -> tuple[list[Trial], Quality]:
    """Every candidate beside plain search, in pairs of equal queries; the best that gains beyond the noise is kept."""
    possible = {name: way for name, way in CANDIDATES.items() if way.flip or store.identity.geometry == "sphere"}
    total = (1 + len(possible)) * len(queries.labels)
    done = 0

    def answers(quality: Quality) -> list[Answer]:
        nonlocal done
        result = []
        vectors = queries.flipped if quality.flip else queries.vectors
        for row in range(len(queries.labels)):
            result.append(_improved(store, vectors[row : row + 1], DEPTH, quality, leave_out=queries.itself[row]))
            done += 1
            if progress is not None:
                progress(done, total)
        return result

    plain = answers(Quality())
    base = ways.measure(plain, queries.labels, sizes)
    rows = [
        Trial("plain search", float(base[:, 0].mean()), float(base[:, 1].mean()), 0.0, (0.0, 0.0), (0.0, 0.0), True)
    ]
    rows += [
        _beside(name, ways.measure(answers(way), queries.labels, sizes), base, queries.labels)
        for name, way in possible.items()
    ]
    rule: ways.Rule = "vote" if _vote_gains(plain, queries.labels) else "nearest"
    best = max((row for row in rows[1:] if row.kept), key=lambda row: row.difference, default=None)
    kept = Quality(rule=rule) if best is None else replace(CANDIDATES[best.name], rule=rule)
    return [rows[0], *(replace(row, kept=row is best) for row in rows[1:])], kept


def _vote_gains(answers: Sequence[Answer], labels: Sequence[str]) -> bool:
    """Whether a vote of the first hits finds the label more often than the nearest one, beyond the noise."""
    pairs = list(zip(answers, labels, strict=True))
    right = {
        rule: np.array([label_of(answer.hits, rule) == label for answer, label in pairs], float)
        for rule in get_args(ways.Rule)
    }
    return bootstrap.interval(right["vote"] - right["nearest"], labels)[0] > 0


def _beside(name: str, values: Any, base: Any, labels: Sequence[str]) -> Trial:
    gain, recall_gain = values[:, 1] - base[:, 1], values[:, 0] - base[:, 0]
    interval, recall = bootstrap.interval(gain, labels), bootstrap.interval(recall_gain, labels)
    kept = interval[0] > 0 and float(recall_gain.mean()) >= 0
    means = values.mean(0)
    return Trial(name, float(means[0]), float(means[1]), float(gain.mean()), interval, recall, kept)


def ask(store: Store, queries: Queries, quality: Quality, progress: Progress | None) -> Trials:
    """Every image with its class in the index, and without."""
    where: Filter = trials.LABELLED if store.count(trials.LABELLED) < store.count() else ()
    vectors = queries.flipped if quality.flip else queries.vectors
    sizes = Counter(item.label for item in store.listed(trials.LABELLED))
    rows: list[trials.Row] = []
    for row, label in enumerate(queries.labels):
        vector = vectors[row : row + 1]
        hits = _improved(store, vector, HITS, quality, where, leave_out=queries.itself[row]).hits
        if hits and sizes[label] > len(queries.itself[row]):
            rows.append(_row(store, label, hits, present=True))
        if any(hit.label == label for hit in hits):
            others = (*where, Condition("label", "!=", (label,)))
            hits = _improved(store, vector, HITS, quality, others).hits
        if hits:
            rows.append(_row(store, label, hits, present=False))
        if progress is not None:
            progress(row + 1, len(queries.labels))
    return trials.as_trials(rows)


def _improved(
    store: Store, vector: Vectors, k: int, quality: Quality, where: Filter = (), leave_out: Sequence[str] = ()
) -> Answer:
    """An answer of all shards: measured on some of them, nothing would hold for all."""
    return complete([improved(store, vector, k, quality, where, leave_out=leave_out)])[0]


def _row(store: Store, label: str, hits: Sequence[Hit], present: bool) -> trials.Row:
    (read,) = of_hits(hits, store.vectors([hit.id for hit in hits]), store.identity.geometry)
    return trials.Row(hits[0].similarity, label, str(hits[0].label), present, read)
