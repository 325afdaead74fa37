"""A threshold holds what it promises, on classes it has not seen; nothing is kept that does not gain."""

import json
from itertools import pairwise

import numpy as np
import pytest

from lookalike import data
from lookalike.errors import UserError
from lookalike.search import Index
from lookalike.search.calibration.chances import chances
from lookalike.search.calibration.thresholds import Calibration, calibrate
from lookalike.search.calibration.trials import among_themselves, judged
from lookalike.search.items import Item

FACTS = {"items": 100, "generation": 1, "date": "2026-11-16", "source": "index"}


def space(classes, each=12, dim=24, noise=0.9, seed=0):
    draw = np.random.default_rng(seed)
    centres = draw.standard_normal((classes, dim))
    vectors = np.repeat(centres, each, axis=0) + noise * draw.standard_normal((classes * each, dim))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32), [f"class {row // each}" for row in range(classes * each)]


@pytest.mark.slow
def test_a_threshold_holds_on_other_classes():
    """Ten times, on other classes: most get sure answers, most of these keep the promise, and chances are true."""
    draws = [among_themselves(*space(60, each=8, noise=0.75, seed=seed)) for seed in range(11)]
    sure, reached, gaps = [], [], []
    for here, there in pairwise(draws):
        found = calibrate(here, **FACTS)
        trials = judged(there, found.models.rule)
        trials = trials.take((trials.classes >= 0) & trials.whole)
        _, chance, _ = chances(trials.evidence, found.models)
        accepted, weights = chance >= found.sure, trials.weights
        sure.append(np.average(accepted[trials.present], weights=weights[trials.present]))
        if accepted.any():
            reached.append(np.average(trials.right[accepted], weights=weights[accepted]) >= found.target)
        gaps.append(np.average(chance, weights=weights) - np.average(trials.right, weights=weights))
    assert np.median(sure) > 0.3
    assert len(reached) >= 9
    assert np.mean(reached) >= 0.85
    assert abs(np.mean(gaps)) < 0.02


@pytest.fixture(scope="module")
def found():
    return calibrate(among_themselves(*space(60)), 0.8, **FACTS)


def test_verdicts_follow_the_thresholds(found):
    assert found.verdict(0.0, found.sure, strange=True) == "sure"
    assert found.verdict(0.0, found.sure - 1e-9) == "maybe"
    assert found.verdict(0.0, 0.0, strange=True) == "unknown"
    sure, maybe = found.by_similarity  # for hits without labels
    assert [found.verdict(value) for value in (sure or 2.0, maybe - 1e-9)][1] == "unknown"
    assert 0 < found.coverage <= 1
    assert Calibration.from_json(json.loads(json.dumps(found.as_json()))) == found


def test_every_verdict_has_its_sentence(found):
    assert found.meaning("sure") == "At least 80% of the answers called sure are right."
    assert found.meaning("maybe", 0.625) == "About 63% of answers like this one are right."
    assert found.meaning("maybe", 0.9999) == "About 99% of answers like this one are right."
    assert found.meaning("maybe") == "The hits have no labels, so no chance can be given."
    assert found.meaning("unknown").startswith("At most 5% of pictures whose class is in the index look as strange")


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
    with pytest.raises(UserError, match="3 classes of two images or more are too few"):
        calibrate(among_themselves(vectors, labels), 0.9, **FACTS)
    with pytest.raises(UserError, match="0 classes of two"):
        calibrate(among_themselves(vectors, [str(row) for row in range(len(vectors))]), 0.9, **FACTS)


def test_an_index_is_calibrated_with_held_out_images(tmp_path, model, photos, held_out):
    index = Index.create(tmp_path / "index", model)
    index.add(photos)
    result = index.calibrate(held_out, precision=0.8)
    assert index.calibration == result.calibration
    assert result.absent == 0
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
    other.store.put([Item("0", label="another")], np.eye(1, other.identity.dim, dtype=np.float32))
    with pytest.raises(UserError, match="no class of these images is in the index"):
        other.calibrate(held_out)
    index.remove(where="label=figs")
    assert index.calibrate(held_out, precision=0.8).absent == 1
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
    assert "figs" in {hit.label for hit in index.search(f"{held_out}/figs/{names[1]}").hits}
    index.close()
