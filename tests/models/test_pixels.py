"""Raw pixels as a model: the same numbers as the baseline, and delivered like any other."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lookalike import data
from lookalike.features import pixels
from lookalike.models import Architecture, Model, Preprocessing, export_onnx
from lookalike.models.preprocess import as_pixels, evaluation_view, prepare
from tests.models.test_export import needs_onnx

COLOURS = Preprocessing(crop=128, resize=144, mean=(120.0, 110.0, 100.0), std=(50.0, 60.0, 70.0), order="BGR")


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 256, (5, 70, 90, 3), dtype=np.uint8)


def raw_pixels(colours=COLOURS):
    return Model.create(Architecture("pixels", dim=None), preprocessing=colours.sized(32, 32))


def test_they_are_the_baseline_to_the_bit(images):
    baseline = pixels(data.arrays(images, list("abcde")), COLOURS)
    assert baseline.shape == (5, 3072)
    assert torch.equal(raw_pixels().encode(images), baseline)


def test_larger_images_shrink_to_the_thumbnail(images):
    large = prepare(images, COLOURS.sized(64, 64))
    means = large.unflatten(3, (32, 2)).unflatten(2, (32, 2)).mean((3, 5))
    torch.testing.assert_close(raw_pixels().embedder(large), means.flatten(1))


def test_grey_thumbnails_of_another_side(images):
    model = Model.create(Architecture("pixels", {"channels": 1, "side": 8}, dim=None))
    assert model.preprocessing == replace(model.preprocessing, crop=8, resize=8, order="L")
    assert model.encode(images).shape == (5, 64)


def test_they_are_saved_and_loaded(images, tmp_path):
    model = raw_pixels()
    model.save(tmp_path / "m")
    loaded = Model.load(tmp_path / "m")
    assert torch.equal(loaded.encode(images), model.encode(images))
    assert loaded.fingerprint == model.fingerprint


@needs_onnx
@pytest.mark.slow
@pytest.mark.plain
def test_they_are_exported(images, tmp_path):
    import onnxruntime

    model = raw_pixels()
    assert export_onnx(model, tmp_path / "m.onnx") < 1e-5
    crops = evaluation_view(as_pixels(images), model.preprocessing).float().numpy()
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"pixels": crops})[0], model.encode(images).numpy(), atol=1e-6)
