"""A threshold holds what it promises, on classes it has not seen; nothing is kept that does not gain."""

from itertools import pairwise

import numpy as np
import pytest

from lookalike import data
from lookalike.errors import UserError
from lookalike.search import Index
from lookalike.search.calibration import evidence
from lookalike.search.calibration.reliability import Curve, lowest_reliable
from lookalike.search.calibration.thresholds import Calibration, calibrate
from lookalike.search.calibration.trials import Trials, among_themselves
from lookalike.search.quality import reordered

FACTS = {"items": 100, "generation": 1, "date": "2026-11-16", "source": "index"}


def space(classes, each=12, dim=24, noise=0.9, seed=0):
    draw = np.random.default_rng(seed)
    centres = draw.standard_normal((classes, dim))
    vectors = np.repeat(centres, each, axis=0) + noise * draw.standard_normal((classes * each, dim))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32), [f"class {row // each}" for row in range(classes * each)]


def oracle(vectors, labels):
    """Trials, the slow way."""
    rows = []
    for row, label in enumerate(labels):
        others = [
            (float(vectors[row].astype(float) @ vectors[place]), labels[place])
            for place in range(len(labels))
            if place != row
        ]
        best = max(others)
        rows.append((best[0], best[1] == label, label, True))
        rows.append((max(score for score, name in others if name != label), False, label, False))
    return sorted(rows, key=lambda row: not row[3])


def test_trials_are_those_of_loops():
    vectors, labels = space(4, each=5)
    trials, expected = among_themselves(vectors, labels), oracle(vectors, labels)
    assert np.allclose(trials.similarities, [row[0] for row in expected], atol=1e-6)
    assert trials.right.tolist() == [row[1] for row in expected]
    assert trials.present.tolist() == [row[3] for row in expected]


def test_an_image_alone_in_its_class_is_asked_only_without_it():
    vectors, labels = space(3, each=4)
    trials = among_themselves(vectors[:9], labels[:9])
    asked = list(zip(trials.classes, trials.present.tolist(), strict=True))
    assert [present for label, present in asked if label == "class 2"] == [False]
    assert [present for label, present in asked if label == "class 0"] == [True] * 4 + [False] * 4


@pytest.mark.slow
def test_a_threshold_holds_on_other_classes():
    """40 times, on other classes: the target is reached in most of them, with most of the coverage."""
    draws = [among_themselves(*space(60, each=8, noise=0.75, seed=seed)) for seed in range(41)]
    for target in (0.8, 0.9):
        reached, shares = [], []
        for here, trials in pairwise(draws):
            found = calibrate(here, target, **FACTS)
            chances = evidence.chance(trials.evidence, found.weights)
            accepted = chances >= found.sure
            reached.append(trials.right[accepted].mean() >= target)
            shares.append(trials.right[accepted].sum() / best_in_hindsight(trials, chances, target))
        # 0.9 less one standard error of 40 draws; benchmarks/calibration.py has real data
        assert np.mean(reached) >= 0.85, target
        assert np.mean(shares) >= 0.8, target


def best_in_hindsight(trials, scores, target):
    order = np.argsort(-scores)
    right = trials.right[order].cumsum()
    return right[np.flatnonzero(right / np.arange(1, len(order) + 1) >= target)[-1]]


def test_verdicts_follow_the_thresholds():
    vectors, labels = space(60)
    found = calibrate(among_themselves(vectors, labels), 0.9, **FACTS)
    assert found.maybe <= found.sure
    assert [found.verdict(0.0, value) for value in (found.sure, found.maybe - 1e-9)] == ["sure", "unknown"]
    sure, maybe = found.by_similarity  # for hits without labels
    assert [found.verdict(value) for value in (sure, maybe - 1e-9)] == ["sure", "unknown"]
    assert 0 < found.coverage <= 1
    assert Calibration.from_json(found.as_json()) == found
    assert found.stale(140, 1) is None
    assert "grown from 100 to 151" in found.stale(151, 1)
    assert "new generation" in found.stale(100, 2)


def test_every_verdict_has_its_sentence():
    found = calibrate(among_themselves(*space(60)), 0.9, **FACTS)
    assert found.meaning("sure") == "At least 90% of answers like this one are right."
    assert found.meaning("maybe").endswith("more likely right than wrong.")
    assert found.meaning("unknown").endswith("more likely wrong than right.")


def test_the_interval_of_the_precision_spans_1_96_deviations():
    trials = among_themselves(*space(60))
    found = calibrate(trials, 0.9, **FACTS)
    curve = Curve.of(trials, evidence.chance(trials.evidence, found.weights))
    sure, place = lowest_reliable(curve, 0.9)
    low, high = found.interval
    assert (found.sure, found.precision) == (sure, curve.precision[place])
    assert found.precision - low == pytest.approx(1.96 * curve.deviation[place])
    assert high == min(1.0, found.precision + 1.96 * curve.deviation[place])


def test_where_nothing_is_reliable_nothing_is_sure():
    draw = np.random.default_rng(0)
    noise = draw.standard_normal((200, 8)).astype(np.float32)
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    found = calibrate(among_themselves(noise, [f"class {row % 20}" for row in range(200)]), 0.95, **FACTS)
    assert found.sure is None
    assert "sure" not in (found.verdict(0.999), found.verdict(0.999, 0.999))


@pytest.mark.parametrize(("target", "message"), [(0.4, "between 0.5 and 1"), (1.0, "between 0.5 and 1")])
def test_impossible_targets_are_refused(target, message):
    vectors, labels = space(6)
    with pytest.raises(UserError, match=message):
        calibrate(among_themselves(vectors, labels), target, **FACTS)


def test_too_few_classes_are_refused():
    vectors, labels = space(3)
    with pytest.raises(UserError, match="3 classes are too few"):
        calibrate(among_themselves(vectors, labels), 0.9, **FACTS)
    with pytest.raises(UserError, match="no answer was right"):
        calibrate(Trials(np.zeros(2), ["a", "b"], ["b", "a"], np.ones(2, bool)), 0.9, **FACTS)


def test_reordering_by_mutual_neighbours_keeps_every_hit():
    vectors, _ = space(5, each=6)
    order = reordered(vectors[0], vectors[1:])
    assert sorted(order) == list(range(29))
    assert set(order[:3]) <= {0, 1, 2, 3, 4}


def test_an_index_is_calibrated_with_held_out_images(tmp_path, model, photos, held_out):
    index = Index.create(tmp_path / "index", model)
    index.add(photos)
    result = index.calibrate(held_out, precision=0.8)
    assert index.calibration == result.calibration
    assert result.calibration.queries == 24
    assert result.calibration.items == 36
    assert {row.name for row in result.compared} >= {"plain search", "flip"}
    assert index.search(held_out / "figs" / "100.png").verdict in ("sure", "maybe")
    grey = np.full((40, 40, 3), 128, np.uint8)
    assert index.search(grey).verdict in ("sure", "maybe", "unknown")
    rows = index.classify(held_out)
    assert len(rows) == 24
    assert np.mean([row.label in row.path for row in rows]) > 0.9
    other = Index.create(tmp_path / "other", model)
    other.add([photos / "figs" / "0.png"])
    with pytest.raises(UserError, match="no class of these images is in the index"):
        other.calibrate(held_out)
    index.close()
    other.close()


def test_calibration_refuses_images_with_several_labels(tmp_path, model, photos, held_out):
    index = Index.create(tmp_path / "index", model)
    index.add(photos)
    names = sorted(path.name for path in (held_out / "figs").iterdir())
    rows = [f"{held_out}/figs/{name},{labels}" for name, labels in zip(names, ["figs|ripe", "figs", ""], strict=False)]
    table = tmp_path / "several.csv"
    for lines in (rows[:2], rows[1:]):
        table.write_text("\n".join(["path,labels", *lines]))
        for source in (table, data.load(table)):
            with pytest.raises(
                UserError, match="have several labels, or none: calibrate with images of one label each"
            ):
                index.calibrate(source)
    index.add(table)
    assert {hit.label for hit in index.search_many([f"{held_out}/figs/{name}" for name in names[1:2]])[0].hits} >= {
        "figs"
    }
    index.close()
