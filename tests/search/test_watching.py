"""Watching: limits that hold, alarms that are rare on ordinary queries and soon on others, sketches of numbers."""

import json
import math
from contextlib import closing

import numpy as np
import pytest
from PIL import Image

from lookalike.search import Index
from lookalike.search.items import Answer, Hit, Item
from lookalike.search.stores import places
from lookalike.search.stores.copying import copy
from lookalike.search.watching.detector import BETS, RARE, Detector, PromiseDetector, limits
from lookalike.search.watching.reference import BLOCK, LEAST, reference
from lookalike.search.watching.watch import DAYS, Day, Watch

CLASSES, EACH, DIM = 60, 20, 12


def world(seed=0):
    """Items around a centre, and queries of classes whose similarities differ from class to class."""
    draw = np.random.default_rng(seed)
    items = draw.standard_normal((500, DIM)).astype(np.float32)
    levels = np.repeat(draw.normal(0.8, 0.03, CLASSES), EACH)
    similarities = levels + draw.normal(0, 0.05, CLASSES * EACH)
    queries = draw.standard_normal((CLASSES * EACH, DIM)).astype(np.float32)
    labels = [f"class {row // EACH}" for row in range(CLASSES * EACH)]
    return draw, items, queries, similarities, labels


def answer(similarity, verdict="maybe", item="a"):
    return Answer([Hit(Item(item), similarity)], verdict)


def test_limits_are_those_of_clopper_and_pearson():
    for n in (20, 133):
        for rank, p in list(enumerate(limits(n)))[:-1]:
            below = sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(rank + 1))
            assert below == pytest.approx(0.01, rel=1e-6)
        assert limits(n)[-1] == 1


def test_bets_do_not_pay_on_average():
    chances = (np.arange(100_000) + 0.5) / 100_000
    assert np.mean([bet * chances ** (bet - 1) for bet in BETS]) == pytest.approx(1, abs=0.02)
    for target in (0.6, 0.95):
        right, wrong = PromiseDetector(target), PromiseDetector(target)
        right.add(True)
        wrong.add(False)
        assert target * right.evidence + (1 - target) * wrong.evidence == pytest.approx(1)


def test_ordinary_queries_raise_fewer_alarms_than_promised():
    """Runs of one class after the other; 200,000 queries may raise 10 false alarms of each score."""
    draw, items, queries, similarities, labels = world()
    found = reference(items, queries, similarities.tolist(), labels)
    detector = Detector(found.blocks["similarity"])
    for level in draw.normal(0.8, 0.03, 10_000):
        for score in draw.normal(level, 0.05, 20):
            detector.add(score)
    assert detector.alarms <= 10


def test_unusual_queries_are_noticed_soon():
    draw, items, queries, similarities, labels = world()
    found = reference(items, queries, similarities.tolist(), labels)
    for shift, off in ((0.3, 0.0), (0.0, 4.0)):  # less similar; elsewhere
        watch, noticed = Watch(found, None), []
        for row in draw.integers(0, len(queries), 500):  # first ordinary ones
            assert watch.answered("q", queries[row : row + 1], answer(similarities[row])) == []
        for number, row in enumerate(draw.integers(0, len(queries), 200)):
            alarms = watch.answered("q", queries[row : row + 1] + off, answer(similarities[row] - shift))
            noticed += [(number, name) for name in alarms]
        assert noticed[0][0] < 200
        assert noticed[0][1] == ("similarity" if shift else "cloud")
        assert watch.today.alarms[noticed[0][1]] >= 1


def test_few_classes_are_no_reference():
    _, items, queries, similarities, labels = world()
    few = (LEAST - 1) * EACH
    assert reference(items, queries[:few], similarities[:few].tolist(), labels[:few]) is None


def test_marks_against_the_promise():
    watch, noticed = Watch(None, 0.9), []
    for number in range(45):
        watch.answered(f"q{number}", None, answer(0.9, "sure"))
        assert watch.marked(f"q{number}", "another", False) == []  # not the best hit
        noticed += watch.marked(f"q{number}", "a", number % 3 > 0)  # two thirds are right, nine tenths were promised
    assert (watch.today.sure_right, watch.today.sure_wrong) == (30, 15)
    assert noticed == ["marks"]
    good = Watch(None, 0.9)
    for number in range(400):
        good.answered(f"q{number}", None, answer(0.9, "sure"))
        assert good.marked(f"q{number}", "a", number % 10 > 0) == []
    assert good.marked("never asked", "a", False) == []


def test_days_are_sketches_and_end():
    _, items, queries, similarities, labels = world()
    now = [1.7e9]
    watch = Watch(reference(items, queries, similarities.tolist(), labels), None, clock=lambda: now[0])
    for _ in range(DAYS + 5):
        watch.answered("name of a query", queries[:1], answer(0.8, "unknown"))
        now[0] += 86_400
    content = watch.as_json()
    assert len(content) == DAYS
    assert content[-1]["verdicts"] == {"sure": 0, "maybe": 0, "unknown": 1, "uncalibrated": 0}
    assert sum(content[-1]["similarities"]) == content[-1]["watched"] == 1
    assert "name" not in json.dumps(content)
    again = Watch(None, None)
    again.take_over([Day.from_json(day) for day in content])
    assert again.as_json() == content
    two = Day.merged([Day(**content[-1]), Day(**content[-1])])
    assert (two.watched, two.verdicts["unknown"]) == (2, 2)


def test_a_calibration_keeps_its_reference(tmp_path, model):
    """Of the calibrating images as the index answers them; it goes along with a copy."""
    assert RARE * BLOCK == 20_000
    draw = np.random.default_rng(0)
    for label in range(LEAST):
        pattern = np.kron(draw.integers(0, 255, (4, 4, 3)), np.ones((8, 8, 1)))
        for number in range(4):
            place = tmp_path / ("photos" if number < 2 else "held_out") / f"{label}"
            place.mkdir(parents=True, exist_ok=True)
            noisy = np.clip(pattern + draw.normal(0, 10, pattern.shape), 0, 255).astype(np.uint8)
            Image.fromarray(noisy).save(place / f"{number}.png")
    with closing(Index.create(tmp_path / "index", model)) as index:
        index.add(tmp_path / "photos")
        assert index.reference is None
        index.calibrate(tmp_path / "held_out", precision=0.6, plain=True)
        found = index.reference
        assert all(len(found.blocks[name]) == LEAST for name in ("similarity", "cloud"))
        hits = index.search(tmp_path / "held_out" / "3" / "2.png", 1).hits
        assert min(found.edges) <= hits[0].similarity + 0.2
        with closing(places.created(tmp_path / "copy", index.identity)) as other:
            copy(index.store, other)
            assert other.documents.read("reference") == index.store.documents.read("reference")
