"""A run calibrates itself on its test classes, and an index made from its model starts with that."""

import json
from dataclasses import replace

import numpy as np
import pytest

from lookalike.errors import UserError
from lookalike.search import Index
from lookalike.search.calibration.foreign import Familiar, pictures
from lookalike.search.calibration.kept import calibrate_run, calibration_of_run, promise_of_run
from lookalike.search.calibration.thresholds import Calibration, calibrate
from lookalike.search.calibration.trials import among_themselves


def cloud(classes=40, noise=0.2):
    draw = np.random.default_rng(0)
    vectors = np.repeat(draw.standard_normal((classes, 16)), 6, axis=0)
    vectors = vectors + noise * draw.standard_normal(vectors.shape)
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32), [f"class {row // 6}" for row in range(len(vectors))]


def test_a_run_is_calibrated_by_its_own_images(model):
    found = calibrate_run(model, *cloud())
    assert promise_of_run(found).startswith(f"At least {found['target']:.0%} of the answers called sure are right")
    assert found.pop("fingerprint") == model.fingerprint
    facts = {"items": 240, "generation": 1, "date": found["date"], "source": "run"}
    vectors, labels = cloud()
    codes = np.unique(labels, return_inverse=True)[1]
    familiar = Familiar.of(vectors, codes, model.encode(pictures()).numpy())
    assert Calibration.from_json(found) == calibrate(among_themselves(vectors, labels), familiar=familiar, **facts)


def test_too_few_classes_and_other_geometries_have_no_calibration(model):
    assert calibrate_run(replace(model, geometry="none"), *cloud()) is None
    assert calibrate_run(model, *cloud(classes=3)) is None


@pytest.fixture
def run(tmp_path, model):
    """A run with its model, whose result says what it measured."""

    def made(**content):
        model.save(tmp_path / "run" / "model")
        (tmp_path / "run" / "result.json").write_text(json.dumps(content))
        return tmp_path / "run" / "model"

    return made


def test_an_index_of_a_run_starts_with_its_calibration(run, model, tmp_path):
    measured = calibrate_run(model, *cloud())
    index = Index.create(tmp_path / "index", run(calibration=measured))
    assert index.calibration.source == "run"
    assert index.calibration.sure == measured["sure"]
    index.close()


def test_a_calibration_of_another_model_does_not_count(run, model, tmp_path):
    for content in ({}, {"calibration": None}, {"calibration": {"fingerprint": "another", "sure": 0.5}}):
        assert calibration_of_run(run(**content), model) is None
    (tmp_path / "run" / "result.json").write_text("[1]")
    assert calibration_of_run(tmp_path / "run" / "model", model) is None
    (tmp_path / "run" / "result.json").write_text("{")
    with pytest.raises(UserError, match=r"result\.json' is not JSON"):
        calibration_of_run(tmp_path / "run" / "model", model)
    model.save(tmp_path / "alone")
    assert calibration_of_run(tmp_path / "alone", model) is None
