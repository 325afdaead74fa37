"""A verdict rests on the first labelled hits, whatever is shown, grouped or filtered."""

import json

import numpy as np
import pytest

from lookalike.search import Index
from lookalike.search.calibration.evidence import HITS, SeenHits
from lookalike.search.calibration.thresholds import Calibration, calibrate
from lookalike.search.calibration.trials import among_themselves
from lookalike.search.items import Item


def cloud(classes=40, each=8, dim=12, seed=0):
    draw = np.random.default_rng(seed)
    points = np.repeat(draw.standard_normal((classes, dim)), each, axis=0)
    points = points + 0.5 * draw.standard_normal(points.shape)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return points.astype(np.float32), [f"class {row // each}" for row in range(len(points))]


@pytest.fixture(scope="module")
def calibration():
    vectors, labels = cloud()
    facts = {"items": len(labels), "generation": 1, "date": "2026-11-16", "source": "index"}
    return calibrate(among_themselves(vectors, labels), 0.8, **facts)


@pytest.fixture
def index(tmp_path, calibration):
    index = Index.create(tmp_path / "index", dim=12)
    vectors, labels = cloud()
    items = [
        Item(f"{row:04d}", label=label if row % 5 else None, columns={"even": row % 2 == 0})
        for row, label in enumerate(labels)
    ]
    index.store.put(items, vectors)
    index.store.documents.write("calibration", json.dumps(calibration.as_json()))
    yield index
    index.close()


def by_hand(query, calibration, chosen):
    """The chance from scratch: the 20 nearest labelled items among the chosen ones."""
    vectors, labels = cloud()
    rows = [row for row in range(len(labels)) if row % 5 and chosen(row)]
    exact = vectors.astype(float)
    rows = sorted(rows, key=lambda row: -float(exact[row] @ query.astype(float)))[:HITS]
    names = {label: code for code, label in enumerate(dict.fromkeys(labels))}
    codes = np.array([[names[labels[row]] for row in rows]])
    every = [names[labels[row]] for row in range(len(labels)) if row % 5 and chosen(row)]
    sizes = np.bincount(every, minlength=len(names))[codes].astype(float)
    items = np.array([float(len(every))])
    judged = calibration.judge(
        SeenHits(exact[rows][None] @ query.astype(float), codes, sizes, (exact[rows] @ exact[rows].T)[None], items)
    )
    return judged, labels[rows[judged.place]]


@pytest.mark.parametrize("seed", range(5))
def test_the_chance_is_that_of_the_first_labelled_hits(index, calibration, seed):
    query = cloud(seed=seed)[0][3 * seed]
    expected, label = by_hand(query, calibration, lambda _: True)
    for asked in ({"k": 1}, {"k": 50}, {"k": 3, "group": "label"}):
        answer = index.search(query, **asked)
        assert len(answer.hits) == asked["k"]
        names = [hit.label or hit.id for hit in answer.hits]  # without a label it is a thing of its own
        assert "group" not in asked or len(set(names)) == asked["k"]
        assert (answer.match, answer.chance) == pytest.approx((expected.match, expected.chance), abs=1e-5)
        assert answer.label == label
        assert answer.verdict == calibration.verdict(0.0, answer.chance, expected.strange)
        assert answer.chance <= answer.match
    even = index.search(query, k=2, where={"even": True})
    assert even.chance == pytest.approx(by_hand(query, calibration, lambda row: row % 2 == 0)[0].chance, abs=1e-5)


def test_without_labels_or_weights_the_similarity_decides(index, calibration):
    query = cloud()[0][0]
    unlabelled = index.search(query, where={"label": None})
    assert (unlabelled.chance, unlabelled.words) == (None, "something like it is here")
    assert unlabelled.verdict == calibration.verdict(unlabelled.hits[0].similarity)
    old = calibration.as_json() | {"sure": 0.9, "maybe": 0.5}
    for name in ("models", "weights", "by_similarity", "doubling"):  # as written before there were chances
        del old[name]
    index.store.documents.write("calibration", json.dumps(old))
    assert index.search(query).verdict == "sure"
    assert index.search(query).chance is None
    assert Calibration.from_json(old).verdict(0.6) == "maybe"
    nothing = index.search(query, where={"label": "nothing"})
    assert (nothing.verdict, nothing.words) == ("unknown", "nothing like it here")
    assert nothing.meaning == "There is nothing to compare it with."
