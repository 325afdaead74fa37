"""ONNX Runtime in the place of torch: only where it gives the same embeddings, exported once per model."""

import importlib.util
import json
import sys

import numpy as np
import pytest
import torch
from torch import nn

from lookalike.errors import UserError
from lookalike.models import Architecture, Model, Preprocessing
from lookalike.models.backends import CHECK, TOLERANCE, Normalised, choose

LIBRARIES = ("onnx", "onnxscript", "onnxruntime")
INSTALLED = all(importlib.util.find_spec(name) for name in LIBRARIES)
needs_onnx = pytest.mark.skipif(
    not INSTALLED, reason="onnx, onnxscript or onnxruntime is not installed (extra: export)"
)
IMAGES = np.random.default_rng(0).integers(0, 256, (21, 40, 50, 3), dtype=np.uint8)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LOOKALIKE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def small(**settings):
    how = Preprocessing(crop=28, resize=32, order="BGR", mean=(10.0, 20.0, 30.0), std=(30.0, 20.0, 30.0))
    return Model.create(Architecture("conv4", {"width": 8}, dim=6, pooling="gem", **settings), preprocessing=how)


@needs_onnx
@pytest.mark.plain
@pytest.mark.parametrize("geometry", ["sphere", "none"])
def test_the_embeddings_are_those_of_torch(geometry):
    model = small()
    model.geometry = geometry
    expected = model.encode(IMAGES)
    model.embedder.train()
    for images in (IMAGES, list(IMAGES)):
        embeddings = model.encode(images, backend="onnx")
        assert model.embedder.training, "the network is in the mode it was in"
        assert not torch.equal(embeddings, expected), "another program computes them"
        torch.testing.assert_close(embeddings, expected, atol=TOLERANCE, rtol=1e-5)


@needs_onnx
@pytest.mark.plain
def test_a_model_is_exported_once_and_each_model_has_its_own_graph(cache):
    model = small()
    assert model.backend("auto").name == "onnx"
    checks = list(cache.rglob(CHECK))
    assert len(checks) == 1
    assert json.loads(checks[0].read_text())["difference"] <= TOLERANCE
    written = checks[0].stat().st_mtime_ns
    assert model.backend("onnx").name == "onnx"
    assert list(cache.rglob(CHECK)) == checks
    assert checks[0].stat().st_mtime_ns == written
    with torch.no_grad():
        model.embedder.head[0].weight.mul_(2).add_(0.1)
    torch.testing.assert_close(model.encode(IMAGES, backend="auto"), model.encode(IMAGES), atol=TOLERANCE, rtol=0)
    assert len(list(cache.rglob(CHECK))) == 2


class Noise(nn.Module):
    """No two calls agree."""

    def forward(self, inputs):
        return inputs.flatten(1) + torch.rand_like(inputs.flatten(1))


class Unknown(nn.Module):
    """An operation that ONNX does not have."""

    def forward(self, inputs):
        return torch.special.bessel_j0(inputs.flatten(1))


@needs_onnx
@pytest.mark.plain
@pytest.mark.parametrize(("network", "reason"), [(Noise(), "differ from"), (Unknown(), "cannot be exported")])
def test_torch_computes_what_the_graph_gets_wrong(network, reason):
    wrapped = Normalised(network, "sphere").eval()
    backend = choose("auto", wrapped, (1, 3, 4), "a fingerprint")
    assert backend.name == "torch"
    assert backend.note.startswith("torch computes the embeddings")
    assert reason in backend.note
    assert backend.run(torch.rand(2, 1, 3, 4)).shape == (2, 12)
    assert choose("auto", wrapped, (1, 3, 4), "a fingerprint").note == backend.note
    with pytest.raises(UserError, match=f"{reason}.*or choose backend torch"):
        choose("onnx", wrapped, (1, 3, 4), "a fingerprint")


@needs_onnx
@pytest.mark.plain
@pytest.mark.parametrize("damage", ["cut", "flipped"])
@pytest.mark.parametrize("file", ["graph.onnx", "check.json"])
def test_a_damaged_graph_is_exported_again(cache, file, damage):
    model = small()
    model.backend("onnx")
    (damaged,) = cache.rglob(file)
    whole = damaged.read_bytes()
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 64]) + whole[middle + 1 :]
    damaged.write_bytes(whole[:40] if damage == "cut" else flipped)
    torch.testing.assert_close(model.encode(IMAGES, backend="onnx"), model.encode(IMAGES), atol=TOLERANCE, rtol=0)
    assert damaged.read_bytes() not in (whole[:40], flipped)


@needs_onnx
@pytest.mark.plain
def test_without_a_place_for_the_graph_torch_computes(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("LOOKALIKE_CACHE", str(tmp_path / "file"))
    model = small()
    backend = model.backend("auto")
    assert backend.name == "torch"
    assert "LOOKALIKE_CACHE" in backend.note
    with pytest.raises(UserError, match="LOOKALIKE_CACHE"):
        model.backend("onnx")


@needs_onnx
@pytest.mark.plain
def test_a_network_without_a_name_is_exported_when_asked_for(cache):
    how = Preprocessing(crop=8, resize=8)
    model = Model(nn.Sequential(nn.Flatten(), nn.Linear(192, 5)), how)
    assert model.backend("auto").name == "torch"
    torch.testing.assert_close(model.encode(IMAGES, backend="onnx"), model.encode(IMAGES), atol=TOLERANCE, rtol=0)
    assert not list(cache.rglob("*.onnx"))


@pytest.mark.parametrize("absent", LIBRARIES)
def test_without_the_libraries_torch_computes(monkeypatch, absent):
    monkeypatch.setitem(sys.modules, absent, None)
    model = small()
    assert model.backend("auto").name == "torch"
    with pytest.raises(UserError, match=f"needs {absent}: pip install"):
        model.backend("onnx")


@pytest.mark.plain
def test_a_misspelt_backend_is_refused():
    with pytest.raises(UserError, match="did you mean 'onnx'"):
        small().encode(IMAGES, backend="onx")
