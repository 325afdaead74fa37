"""`lookalike export MODEL` against the model itself, run by another program."""

import numpy as np
import pytest

from lookalike.models import Model


def test_onnx_says_what_torch_says(lookalike, finished, photos, tmp_path):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    from PIL import Image

    run, _ = finished
    ended = lookalike("export", run / "model", "--out", tmp_path / "model.onnx")
    assert ended.code == 0, ended.error
    assert "differs from torch by" in ended.out
    paths = sorted(photos.rglob("*.png"))[:5]
    expected = Model.load(run / "model").encode(paths)
    pixels = np.stack([np.asarray(Image.open(path).convert("L"), dtype=np.float32)[None] for path in paths])
    session = runtime.InferenceSession(str(tmp_path / "model.onnx"))
    (found,) = session.run(None, {session.get_inputs()[0].name: pixels})
    assert np.allclose(found, expected.numpy(), atol=1e-4)


def test_mistakes(lookalike, tmp_path):
    lookalike("export", tmp_path / "none").refused("none")
