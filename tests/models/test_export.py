"""The ONNX file takes pixels, returns the model's embeddings, and describes how pixels are prepared."""

import importlib.util
import json
import sys
import types

import numpy as np
import pytest
import torch

from lookalike.errors import UserError
from lookalike.models import Architecture, Model, Preprocessing, export
from lookalike.models.preprocess import as_pixels, evaluation_view

INSTALLED = all(importlib.util.find_spec(name) for name in ("onnx", "onnxscript", "onnxruntime"))
needs_onnx = pytest.mark.skipif(
    not INSTALLED, reason="onnx, onnxscript or onnxruntime is not installed (extra: export)"
)


def small(order="RGB"):
    how = Preprocessing(crop=28, resize=32, order=order, mean=(10.0, 20.0, 30.0), std=(1.0, 2.0, 3.0))
    return Model.create(Architecture("conv4", {"width": 8}, dim=6, pooling="gem"), preprocessing=how)


@pytest.mark.parametrize("absent", ["onnx", "onnxscript", "onnxruntime"])
def test_without_the_libraries_it_says_what_to_install(tmp_path, monkeypatch, absent):
    for name in ("onnx", "onnxscript", "onnxruntime"):
        monkeypatch.setitem(sys.modules, name, None if name == absent else types.ModuleType(name))
    with pytest.raises(UserError, match=rf"export needs {absent}: pip install '.*{absent}.*'"):
        export.export_onnx(small(), tmp_path / "m.onnx")


def test_pixels_to_embeddings_is_what_encode_does():
    model = small("BGR")
    images = np.random.default_rng(0).integers(0, 256, (3, 40, 50, 3), dtype=np.uint8)
    crops = evaluation_view(as_pixels(images), model.preprocessing).float()
    torch.testing.assert_close(export.PixelsToEmbeddings(model).eval()(crops), model.encode(images))


@needs_onnx
@pytest.mark.slow
@pytest.mark.plain
def test_the_file_does_what_the_model_does(tmp_path):
    import onnx
    import onnxruntime

    model = small("BGR")
    model.embedder.train()
    difference = export.export_onnx(model, tmp_path / "m.onnx")
    assert difference < export.TOLERANCE
    assert model.embedder.training, "the model itself is left as it was"
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]
    images = np.random.default_rng(0).integers(0, 256, (7, 40, 50, 3), dtype=np.uint8)
    crops = evaluation_view(as_pixels(images), model.preprocessing).float().numpy()
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    (computed,) = session.run(None, {"pixels": crops})
    np.testing.assert_allclose(computed, model.encode(images).numpy(), atol=1e-5)
    notes = {entry.key: entry.value for entry in onnx.load(str(tmp_path / "m.onnx")).metadata_props}
    how = json.loads(notes["preprocessing"])
    assert how.pop("in_graph") == ["order", "mean", "std"]
    assert Preprocessing.from_dict(how) == model.preprocessing
    assert notes["geometry"] == "sphere"


@needs_onnx
@pytest.mark.slow
@pytest.mark.plain
def test_a_file_that_differs_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setattr(export, "_largest_difference", lambda *_: 0.1)
    with pytest.raises(UserError, match=r"differs from torch by 1\.0e-01"):
        export.export_onnx(small(), tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())
    monkeypatch.undo()
    with pytest.raises(UserError, match="cannot write"):
        export.export_onnx(small(), tmp_path / "absent" / "m.onnx")
