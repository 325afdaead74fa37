"""Calibrating an index with labelled images: which ways to better answers gain, and what a similarity then means."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from lookalike.errors import check
from lookalike.evaluation.statistics import bootstrap
from lookalike.search import quality as ways
from lookalike.search import trials
from lookalike.search.calibration import Calibration, Trials, calibrate
from lookalike.search.filters import Condition, Filter
from lookalike.search.items import Answer, Vectors
from lookalike.search.quality import CANDIDATES, DEPTH, Quality, Trial, improved, label_of
from lookalike.search.stores import Store

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
        return Queries(self.vectors[places], self.flipped[places], [self.labels[row] for row in places],
                       [self.itself[row] for row in places])  # fmt: skip


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
    asked = ask(store, queries, quality, stage("asking every image"))
    identity = store.identity
    found = calibrate(
        asked, precision, items=store.count(), generation=identity.generation,
        date=datetime.now(UTC).isoformat(timespec="seconds"), source="index", seen_in_training=seen_in_training,
    )  # fmt: skip
    return Calibrated(found, quality, compared)


def compare(
    store: Store, queries: Queries, sizes: Counter[str], progress: Progress | None
) -> tuple[list[Trial], Quality]:
    """Every candidate beside plain search, in pairs of equal queries; what gains is kept together."""
    total = (1 + len(CANDIDATES)) * len(queries.labels)
    done = 0

    def answers(quality: Quality) -> list[Answer]:
        nonlocal done
        result = []
        vectors = queries.flipped if quality.flip else queries.vectors
        for row in range(len(queries.labels)):
            result.append(improved(store, vectors[row : row + 1], DEPTH, quality, leave_out=queries.itself[row]))
            done += 1
            if progress is not None:
                progress(done, total)
        return result

    plain = answers(Quality())
    base = ways.measure(plain, queries.labels, sizes)
    rows = [
        Trial("plain search", float(base[:, 0].mean()), float(base[:, 1].mean()), 0.0, (0.0, 0.0), (0.0, 0.0), True)
    ]
    rows += [_beside(name, ways.measure(answers(way), queries.labels, sizes), base, queries.labels)
             for name, way in CANDIDATES.items()]  # fmt: skip
    voted = np.array(
        [label_of(answer.hits, "vote")[0] == label for answer, label in zip(plain, queries.labels, strict=True)]
    )
    nearest = np.array(
        [label_of(answer.hits, "nearest")[0] == label for answer, label in zip(plain, queries.labels, strict=True)]
    )
    low, _ = bootstrap.interval(voted.astype(float) - nearest, queries.labels)
    return rows, _together([row.name for row in rows[1:] if row.kept], rows, "vote" if low > 0 else "nearest")


def _beside(name: str, values: Any, base: Any, labels: Sequence[str]) -> Trial:
    gain, recall_gain = values[:, 1] - base[:, 1], values[:, 0] - base[:, 0]
    interval, recall = bootstrap.interval(gain, labels), bootstrap.interval(recall_gain, labels)
    kept = interval[0] > 0 and float(recall_gain.mean()) >= 0
    means = values.mean(0)
    return Trial(name, float(means[0]), float(means[1]), float(gain.mean()), interval, recall, kept)


def _together(kept: Sequence[str], rows: Sequence[Trial], rule: ways.Rule) -> Quality:
    """The best of what gained: one way to expand at the most."""
    best = max((row for row in rows if row.name in kept), key=lambda row: row.difference, default=None)
    if best is None:
        return Quality(rule=rule)
    way = CANDIDATES[best.name]
    return Quality(way.expansion, way.power, way.reciprocal, way.flip, rule)


def ask(store: Store, queries: Queries, quality: Quality, progress: Progress | None) -> Trials:
    """Every image with its class in the index, and without."""
    where: Filter = trials.LABELLED if store.count(trials.LABELLED) < store.count() else ()
    vectors = queries.flipped if quality.flip else queries.vectors
    known = {item.label for item in store.listed(trials.LABELLED)}
    rows: list[tuple[float, bool, str, bool]] = []
    for row, label in enumerate(queries.labels):
        vector, itself = vectors[row : row + 1], queries.itself[row]
        best = improved(store, vector, 1, quality, where, leave_out=itself)
        if best.hits and label in known:
            rows.append((best.hits[0].similarity, best.hits[0].label == label, label, True))
        others = (*where, Condition("label", "!=", (label,)))
        away = best if best.hits and best.hits[0].label != label else improved(store, vector, 1, quality, others)
        if away.hits:
            rows.append((away.hits[0].similarity, False, label, False))
        if progress is not None:
            progress(row + 1, len(queries.labels))
    return trials.as_trials(rows)
