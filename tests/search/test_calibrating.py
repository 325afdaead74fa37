"""Calibration step by step: which way wins, whose vote counts, what every image is asked."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from lookalike.search import Index
from lookalike.search.calibration.measuring import Queries, _vote_gains, ask, compare
from lookalike.search.items import Answer, Hit, Item
from lookalike.search.quality import CANDIDATES, Quality

CLASSES, EACH, DIM = 6, 5, 8


def cloud(seed=0):
    draw = np.random.default_rng(seed)
    points = np.repeat(np.eye(CLASSES, DIM), EACH, axis=0) + 0.1 * draw.standard_normal((CLASSES * EACH, DIM))
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)


LABELS = [f"class {row // EACH}" for row in range(CLASSES * EACH)]


def queries(flipped=None):
    vectors = cloud(1)
    return Queries(vectors, vectors if flipped is None else flipped, LABELS, [[] for _ in LABELS])


@pytest.fixture
def make(tmp_path):
    """Stores that hold labelled items, and some without a label."""
    opened = []

    def made(geometry="sphere", unlabelled=0):
        opened.append(Index.create(tmp_path / f"index{len(opened)}", dim=DIM, geometry=geometry))
        items = [Item(f"{row:03d}", label=label) for row, label in enumerate(LABELS)]
        opened[-1].store.put(items, cloud())
        if unlabelled:
            opened[-1].store.put([Item(f"u{row}") for row in range(unlabelled)], cloud(1)[:unlabelled])
        return opened[-1].store

    yield made
    for index in opened:
        index.close()


def test_some_of_the_queries_keep_all_that_belongs_to_them():
    whole = Queries(cloud(1), cloud(2), LABELS, [[label] for label in LABELS])
    some = whole.take(np.array([7, 2]))
    assert np.array_equal(some.vectors, cloud(1)[[7, 2]])
    assert np.array_equal(some.flipped, cloud(2)[[7, 2]])
    assert (some.labels, some.itself) == (["class 1", "class 0"], [["class 1"], ["class 0"]])


@pytest.mark.parametrize(("geometry", "ways"), [("sphere", 1 + len(CANDIDATES)), ("ball", 2)])
def test_progress_of_comparing_ends_at_its_total(make, geometry, ways):
    told = []
    sizes = Counter(LABELS)
    compared, _ = compare(make(geometry), queries(), sizes, lambda done, total: told.append((done, total)))
    assert len(compared) == ways
    assert told == [(number, ways * len(LABELS)) for number in range(1, ways * len(LABELS) + 1)]


def test_the_way_that_gains_most_is_kept(make):
    """Plain vectors mean nothing here; with their mirror images they find their class."""
    turned = replace(queries(), vectors=cloud(1)[::-1].copy(), flipped=cloud(1))
    compared, kept = compare(make(), turned, Counter(LABELS), None)
    assert kept == Quality(flip=True)
    assert [row.name for row in compared if row.kept] == ["plain search", "flip"]
    assert compared[0].recall == 0
    same, kept = compare(make(), queries(), Counter(LABELS), None)
    assert kept == Quality()
    assert [row.kept for row in same] == [True, False, False, False, False]


def answer(*hits):
    return Answer([Hit(Item(f"{place}", label=label), value) for place, (label, value) in enumerate(hits)], "maybe")


def test_a_vote_counts_only_where_it_finds_more():
    outvoted = [answer(("other", 0.9), (label, 0.89), (label, 0.88)) for label in LABELS]
    agreed = [answer((label, 0.9), ("other", 0.89), (label, 0.88)) for label in LABELS]
    assert _vote_gains(outvoted, LABELS)
    assert not _vote_gains(agreed, LABELS)


def test_every_image_is_asked_with_its_class_and_without(make):
    told = []
    trials = ask(make(), queries(), Quality(), lambda done, total: told.append((done, total)))
    assert trials.present.tolist() == [True, False] * len(LABELS)
    assert list(trials.classes) == [label for label in LABELS for _ in range(2)]
    assert trials.right.tolist() == trials.present.tolist()
    assert told == [(number, len(LABELS)) for number in range(1, len(LABELS) + 1)]


def test_images_are_asked_flipped_where_that_was_kept(make):
    flipped = ask(make(), queries(flipped=cloud(1)[::-1].copy()), Quality(flip=True), None)
    assert not flipped.right.any()
    assert ask(make(), queries(flipped=cloud(1)[::-1].copy()), Quality(), None).right.any()


def test_items_without_a_label_answer_nothing(make):
    with_others, without = (ask(make(unlabelled=number), queries(), Quality(), None) for number in (4, 0))
    assert np.array_equal(with_others.similarities, without.similarities)
    assert list(with_others.answers) == list(without.answers)
