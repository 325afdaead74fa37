"""`lookalike export MODEL` against the model itself, run by another program."""

import numpy as np
import pytest

from lookalike.models import Model


def test_onnx_and_torch_agree(lookalike, finished, photos, tmp_path):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    from PIL import Image

    run, _ = finished
    completed = lookalike("export", run / "model", "--out", tmp_path / "model.onnx")
    assert completed.code == 0, completed.error
    assert "differs from torch by" in completed.out
    paths = sorted(photos.rglob("*.png"))[:5]
    expected = Model.load(run / "model").encode(paths)
    pixels = np.stack([np.asarray(Image.open(path).convert("L"), dtype=np.float32)[None] for path in paths])
    session = runtime.InferenceSession(str(tmp_path / "model.onnx"))
    (embeddings,) = session.run(None, {session.get_inputs()[0].name: pixels})
    assert np.allclose(embeddings, expected.numpy(), atol=1e-4)


def test_mistakes(lookalike, tmp_path):
    lookalike("export", tmp_path / "none").refused("none")
