"""An index calibrates itself: what its own items ask, whether flip is kept, and what it promises."""

import json
from dataclasses import replace

import numpy as np
import pytest

from lookalike.errors import UserError
from lookalike.search import Index
from lookalike.search.calibration.chances import in_percent
from lookalike.search.calibration.measuring import compare
from lookalike.search.calibration.thresholds import calibrate, possible
from lookalike.search.calibration.trials import ALL, Gallery, TrialNeighbours, among_themselves, draw, judged
from lookalike.search.items import Item
from lookalike.search.quality import Quality

CLASSES, EACH, DIM = 24, 8, 12
FACTS = {"items": 100, "generation": 1, "date": "2026-11-18", "source": "index"}


def cloud(noise=0.4, seed=0, classes=CLASSES):
    draw = np.random.default_rng(seed)
    points = np.repeat(draw.standard_normal((classes, DIM)), EACH, axis=0)
    points = points + noise * draw.standard_normal(points.shape)
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)


def labels(classes=CLASSES):
    return [f"class {row // EACH}" for row in range(classes * EACH)]


@pytest.fixture
def shop(tmp_path):
    """An index of vectors, without a model."""
    index = Index.create(tmp_path / "index", dim=DIM)
    index.store.put([Item(f"{row:03d}", label=label) for row, label in enumerate(labels())], cloud())
    index.store.put([Item("bare")], cloud(seed=1)[:1])
    yield index
    index.close()


def test_an_index_is_calibrated_without_further_images(shop):
    told = []
    result = shop.calibrate(stage=lambda name: told.append(name))
    calibration = shop.calibration
    assert told == ["asking every image", "looking at ordinary queries"]
    assert (calibration.source, calibration.classes, calibration.queries) == ("index", CLASSES, CLASSES * EACH)
    assert result.calibration == calibration
    assert (result.compared, result.quality) == ([], Quality())
    assert 0 < calibration.doubling < 0.3
    answer = shop.search(cloud()[4])
    assert (answer.label, answer.verdict) == ("class 0", "sure")
    assert answer.words == "sure: class 0"
    assert answer.match >= answer.chance >= calibration.sure


def test_what_looks_like_nothing_here_is_unknown(shop):
    shop.calibrate()
    strangers = np.random.default_rng(5).permuted(cloud(), axis=0)
    answers = [shop.search(vector / np.linalg.norm(vector)) for vector in strangers[:40]]
    nothing = [answer for answer in answers if answer.verdict == "unknown"]
    assert len(nothing) >= 20
    assert {answer.words for answer in nothing} == {"nothing like it here"}
    known = [shop.search(vector) for vector in cloud(seed=0)[::5]]
    assert sum(answer.verdict == "unknown" for answer in known) <= 2


def test_chance_and_words_never_contradict_each_other(shop):
    shop.calibrate()
    calibration = shop.calibration
    draw = np.random.default_rng(2)
    for vector in cloud(noise=1.2, seed=0)[draw.permutation(CLASSES * EACH)[:60]]:
        answer = shop.search(vector)
        if answer.verdict == "sure":
            assert answer.chance >= calibration.sure >= calibration.target
        elif answer.verdict == "unknown":
            assert answer.chance <= answer.match <= 0.5
        elif answer.chance >= 0.5:
            assert answer.words == f"probably {answer.label}"
        elif answer.words == f"{answer.label} or {answer.second}":
            assert answer.chance >= 0.25  # the next label is not said to be likelier than the label
            assert answer.meaning.startswith("It is one of the two in about ")
            assert answer.meaning.endswith(f", the first in {in_percent(answer.chance)}.")
        else:
            assert answer.words == f"something like {answer.label}, not sure which"


def test_few_classes_promise_less_and_say_so(tmp_path):
    index = Index.create(tmp_path / "few", dim=DIM)
    index.store.put([Item(f"{row:03d}", label=label) for row, label in enumerate(labels(8))], cloud(0.1, classes=8))
    before = "Answers are uncalibrated: lookalike calibrate measures how far to trust them. "
    assert index.promise == f"{before}8 classes can promise at most 88%; 95% takes at least 19."
    calibration = index.calibrate().calibration
    assert index.promise == calibration.promise
    assert calibration.target == 0.85
    assert calibration.sure is not None
    assert "8 classes can promise at most 88%; 95% takes at least 19" in calibration.promise
    assert index.calibrate(precision=0.95).calibration.sure is None
    assert "8 classes like these cannot promise 95%; 95% takes at least 19." in index.promise
    index.store.put([Item("000", label="class 0", columns={"sku": 7})], cloud()[:1])
    index.have_things("sku")
    assert f"{index.promise} " == before  # nobody counts numbers
    index.close()
    assert possible(19).endswith("19 classes are enough to promise 95%.")
    assert possible(4).endswith("that takes at least 5 classes of two photos, and there are 4.")


@pytest.mark.parametrize(
    ("noise", "level", "reason"),
    [
        (0.2, 0.95, ""),
        (0.6, 0.9, " (the highest level that covers 25% of the queries or more); "),
        (0.74, 0.8, " (no level from 80% up covers 25% of the queries; this one covers most); "),
    ],
)
def test_the_default_level_is_one_that_answers_reach(noise, level, reason):
    batches = among_themselves(cloud(noise, classes=80), labels(80))
    calibration = calibrate(batches, **FACTS)
    assert calibration.target == level
    assert reason in calibration.promise
    assert (calibration.coverage >= 0.25) == ("this one covers most" not in reason)
    higher = [calibrate(batches, other, **FACTS) for other in (0.95, 0.9, 0.85) if other > level]
    assert all(one.sure is None or one.coverage < 0.25 for one in higher)


def test_strangers_are_told_apart_by_their_first_hits(tmp_path):
    draw = np.random.default_rng(0)
    points = np.repeat(draw.standard_normal((40, 64)) + 1.5, EACH, axis=0) + 1.2 * draw.standard_normal((40 * EACH, 64))
    vectors = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)
    calibration = calibrate(among_themselves(vectors, labels(40)), **FACTS)
    usual = calibration.models.usual
    index = Index.create(tmp_path / "index", dim=64)
    index.store.put([Item(f"{row:03d}", label=label) for row, label in enumerate(labels(40))], vectors)
    index.store.documents.write("calibration", json.dumps(calibration.as_json()))
    others = draw.standard_normal((20, 64)).astype(np.float32)
    assert {index.search(vector / np.linalg.norm(vector)).verdict for vector in others} == {"unknown"}
    known = [index.search(f"{row:03d}").verdict for row in range(0, 320, 8)]
    assert known.count("unknown") <= 4
    assert usual[0] > 0
    content = calibration.as_json()
    content["models"]["unknown"] = 0.0  # now the first hits decide alone
    index.store.documents.write("calibration", json.dumps(content))
    assert {index.search(vector / np.linalg.norm(vector)).verdict for vector in others} == {"unknown"}
    del content["models"]["usual"], content["reason"]  # as it was kept before: the match decides alone
    index.store.documents.write("calibration", json.dumps(content))
    assert {index.search(vector / np.linalg.norm(vector)).verdict for vector in others} == {"maybe"}
    index.close()


def test_growth_is_told_with_what_it_costs(shop):
    calibration = shop.calibrate().calibration
    assert calibration.stale(calibration.items, 1) is None
    costly = replace(calibration, doubling=0.04)
    assert costly.stale(4 * calibration.items, 1).endswith("; about 8% fewer labels are right than then")
    assert "new generation" in calibration.stale(calibration.items, 2)
    of_run = replace(calibration, source="run", items=100, doubling=0.0)  # the index has the train photos too
    assert [of_run.stale(items, 1) for items in (200, 400)] == [None, None]
    assert of_run.stale(401, 1) == "chances were measured among 100 test photos, and the index has 401 items"


def test_items_without_labels_change_no_answer(shop):
    """Nothing can be called like them, so neither chances nor the warning count them."""
    shop.calibrate()
    calibration, queries = shop.calibration, cloud(noise=0.6)[::7]
    before = [shop.search(vector, 3, where={"label": [*set(labels())]}) for vector in queries]
    far = np.random.default_rng(3).standard_normal((3 * CLASSES * EACH, DIM)).astype(np.float32)
    far /= np.linalg.norm(far, axis=1, keepdims=True)
    shop.store.put([Item(f"bare {row}") for row in range(len(far))], far)
    after = [shop.search(vector, 3) for vector in queries]
    parts = ("match", "label", "second", "chance", "verdict", "words", "meaning")
    for part in parts:
        assert [getattr(answer, part) for answer in after] == [getattr(answer, part) for answer in before]
    assert shop.stale is None
    again = shop.calibrate().calibration
    assert (again.items, calibration.items) == (CLASSES * EACH, CLASSES * EACH)
    assert again == replace(calibration, date=again.date)


def test_items_without_labels_cannot_calibrate(tmp_path):
    index = Index.create(tmp_path / "bare", dim=DIM)
    index.store.put([Item("bare")], cloud()[:1])
    with pytest.raises(UserError, match="have no labels"):
        index.calibrate()
    index.close()


def test_every_class_is_absent_has_one_photo_three_and_all():
    batches = among_themselves(cloud(), labels())
    trials = judged(batches, None)
    trials = trials.take((trials.classes >= 0) & trials.whole)
    for row in range(0, CLASSES * EACH, 17):
        states = sorted(trials.photos[trials.queries == row].tolist())
        assert set(states) <= {0, 1, 3, ALL}
        assert (states.count(0), states.count(ALL)) == (1, 1)
    assert not trials.right[~trials.present].any()
    sizes = {size: set() for size in (1, 3, ALL)}
    for batch in batches:
        own = batch.seen.sizes[batch.seen.labels == batch.classes[:, None]]
        if batch.whole and batch.photos[0] > 0:
            sizes[int(batch.photos[0])] |= set(own.tolist())
    assert sizes == {1: {1.0}, 3: {3.0}, ALL: {EACH - 1.0}}


def test_flip_is_kept_only_where_no_size_of_classes_loses():
    good, bad = cloud(), cloud()[::-1].copy()

    def asked(queries):
        scores = (queries @ good.T).astype(float)
        np.fill_diagonal(scores, -np.inf)
        order = np.argsort(-scores, axis=1)
        codes = np.arange(CLASSES * EACH) // EACH
        near = TrialNeighbours(np.take_along_axis(scores, order, 1), order, codes, np.arange(len(codes)))
        return draw(near, Gallery(codes, lambda rows: good[rows], "sphere"))

    better, worse = compare(asked(bad), asked(good)), compare(asked(good), asked(bad))
    assert better[1].kept
    assert min(better[1].by_size.values()) > 0
    assert not worse[1].kept
    assert not compare(asked(good), asked(good))[1].kept


def test_what_version_0_2_0_switched_on_and_is_gone_is_off():
    assert Quality.from_json({"expansion": 5, "reciprocal": True, "flip": True, "rule": "vote"}) == Quality(flip=True)
    assert Quality.from_json({"expansion": 5, "power": 3.0, "local": 0.02}).names == []
