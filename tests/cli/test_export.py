"""`lookalike export MODEL` against the model itself, run by another program."""

import json
import shutil

import numpy as np
import pytest

from lookalike import evaluate
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


def test_a_small_file_says_what_it_is_worth(lookalike, finished, photos, tmp_path):
    """The figures in the file are those that another program measures with it."""
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    from PIL import Image

    run, _ = finished
    out = tmp_path / "small.onnx"
    options = ("--out", out, "--precision", "int8", "--photos", photos)
    lookalike("export", run / "model", *options, "--most-lost", "-101").refused("loses", "more than -101")
    assert not list(tmp_path.glob("*.onnx*")), "a file that loses too much is not written"
    completed = lookalike("export", run / "model", *options, "--most-lost", "100")
    assert completed.code == 0, completed.error
    classes = set(Model.load(run / "model").classes)
    unseen = [path for path in sorted(photos.rglob("*.png")) if path.parent.name not in classes]
    pixels = np.stack([np.asarray(Image.open(path).convert("L"), dtype=np.float32)[None] for path in unseen])
    (embeddings,) = runtime.InferenceSession(str(out)).run(None, {"pixels": pixels})
    result = evaluate(embeddings, [path.parent.name for path in unseen], metrics=["recall@1", "map@r"])
    file = onnx.load(str(out))
    # grey pixels that differ in the last bit of a float may be rounded to neighbouring 8-bit values
    notes = {entry.key: entry.value for entry in file.metadata_props}
    assert float(notes["recall@1"]) == pytest.approx(result["recall@1"], abs=0.01)
    assert float(notes["map@r"]) == pytest.approx(result["map@r"], abs=0.01)
    assert notes["precision"] == "int8"
    assert int(notes["photos"]) == len(unseen)
    assert int(notes["calibration"]) == sum(path.parent.name in classes for path in photos.rglob("*.png"))
    assert json.loads(notes["preprocessing"])["crop"] == pixels.shape[-1]
    assert {weight.data_type for weight in file.graph.initializer} >= {onnx.TensorProto.INT8}


def test_half_precision_is_half_the_size(lookalike, finished, photos, tmp_path):
    for name in ("onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(name)
    run, _ = finished
    out = tmp_path / "half.onnx"
    completed = lookalike("export", run / "model", "--out", out, "--precision", "float16", "--photos", photos)
    assert completed.code == 0, completed.error
    assert "float16; recall@1" in completed.out
    assert out.stat().st_size < 0.6 * (run / "model" / "weights.safetensors").stat().st_size


def test_mistakes(lookalike, finished, photos, tmp_path):
    run, _ = finished
    lookalike("export", tmp_path / "none").refused("none")
    lookalike("export", run / "model", "--precision", "int8").refused("--photos")
    lookalike("export", run / "model", "--precision", "int4", "--photos", photos).refused("int4", "float16, int8")
    seen = tmp_path / "seen"
    for name in Model.load(run / "model").classes:
        shutil.copytree(photos / name, seen / name)
    small = ("--precision", "float16", "--photos", seen)
    lookalike("export", run / "model", *small).refused("trained on every class", "photos of other classes")
    unseen = tmp_path / "unseen"
    for place in photos.iterdir():
        if not (seen / place.name).exists():
            shutil.copytree(place, unseen / place.name)
    small = ("--precision", "int8", "--photos", unseen)
    lookalike("export", run / "model", *small).refused("classes that the model was trained on", "take float16")
