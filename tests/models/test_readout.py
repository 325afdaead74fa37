"""An embedding may be the head, the centred features, their components, or head and features: each as numpy has it."""

import numpy as np
import pytest
import torch

from lookalike.errors import UserError
from lookalike.models import Architecture, Model, Preprocessing, Readout, export_onnx, principal_axes
from lookalike.models.preprocess import as_pixels, evaluation_view, prepare
from tests.models.test_export import needs_onnx

WIDTH = 8
READOUTS = [
    Readout("features"),
    Readout("features", components=3),
    Readout("both", head_weight=0.3),
    Readout("both", components=3),
]


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 256, (12, 40, 50, 3), dtype=np.uint8)


@pytest.fixture
def model():
    how = Preprocessing(crop=28, resize=32)
    return Model.create(Architecture("conv4", {"width": WIDTH}, dim=4, pooling="gem"), seed=3, preprocessing=how)


def statistics(model, images):
    """Features as rows, their mean at unit length, and the axes of what is left."""
    with torch.no_grad():
        features = model.embedder.features(prepare(images, model.preprocessing)).double().numpy()
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    mean = unit.mean(0)
    axes = np.linalg.svd(unit - mean)[2]
    return features, unit - mean, mean, axes * np.sign(axes[np.arange(WIDTH), np.abs(axes).argmax(1)])[:, None]


def read_out(model, readout, images):
    _, centred, mean, _ = statistics(model, images)
    axes = None
    if readout.components is not None:
        axes = principal_axes(torch.from_numpy(centred).float(), readout.components)
    return model.with_readout(readout, torch.from_numpy(mean).float(), axes)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def expected(model, readout, images):
    features, centred, _, axes = statistics(model, images)
    head = features @ model.embedder.head.linear.weight.detach().double().numpy().T
    head += model.embedder.head.linear.bias.detach().double().numpy()
    part = centred if readout.components is None else centred @ axes[: readout.components].T
    if readout.kind == "features":
        return unit(part)
    weight = readout.head_weight
    return np.concatenate([np.sqrt(weight) * unit(head), np.sqrt(1 - weight) * unit(part)], 1)


@pytest.mark.parametrize("readout", READOUTS)
def test_encode_is_what_numpy_computes(model, images, readout):
    other = read_out(model, readout, images)
    embeddings = other.encode(images)
    np.testing.assert_allclose(embeddings, expected(model, readout, images), atol=2e-5)
    assert other.embedder.dim == embeddings.shape[1]
    assert model.encode(images).shape == (12, 4), "the model itself stays as it was"


def test_side_by_side_the_cosines_are_averaged(model, images):
    both = read_out(model, Readout("both", head_weight=0.3), images).encode(images)
    head = model.encode(images)
    features = read_out(model, Readout("features"), images).encode(images)
    torch.testing.assert_close(both @ both.T, 0.3 * head @ head.T + 0.7 * features @ features.T, atol=1e-5, rtol=0)


@pytest.mark.parametrize("readout", READOUTS)
def test_it_survives_the_folder(model, images, readout, tmp_path):
    other = read_out(model, readout, images)
    other.save(tmp_path / "m")
    loaded = Model.load(tmp_path / "m")
    assert torch.equal(loaded.encode(images), other.encode(images))
    assert loaded.architecture == other.architecture
    assert loaded.fingerprint == other.fingerprint != model.fingerprint


@needs_onnx
@pytest.mark.slow
@pytest.mark.plain
@pytest.mark.parametrize("readout", READOUTS[1:3])
def test_it_is_exported_like_any_other(model, images, readout, tmp_path):
    import onnxruntime

    other = read_out(model, readout, images)
    assert export_onnx(other, tmp_path / "m.onnx") < 1e-4
    crops = evaluation_view(as_pixels(images), other.preprocessing).float().numpy()
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"pixels": crops})[0], other.encode(images).numpy(), atol=1e-5)


def test_axes_are_those_of_the_widest_spread():
    points = torch.randn(50, 6, generator=torch.Generator().manual_seed(0)) * torch.tensor([1.0, 9, 1, 5, 1, 1])
    axes = principal_axes(points - points.mean(0), 2)
    assert axes.abs().argmax(1).tolist() == [1, 3]
    torch.testing.assert_close(axes @ axes.T, torch.eye(2))
    with pytest.raises(UserError, match="51 components need as many images, not 50"):
        principal_axes(points, 51)


@pytest.mark.plain
@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Readout("tail"), "unknown readout 'tail'"),
        (lambda: Readout("features", components=0), "components must be a positive number"),
        (lambda: Readout("head", components=3), "components belong to the features"),
        (lambda: Readout("both", head_weight=1.0), "head_weight must lie between 0 and 1, not 1.0"),
        (lambda: Architecture("conv4", dim=4, readout=Readout("features")).build(), "uses no head: set dim to none"),
        (lambda: Architecture("conv4", dim=None, readout=Readout("both")).build(), "needs a head: set dim"),
        (lambda: Architecture("conv4", dim=None, readout=Readout("features", 65)).build(), "give at most 64"),
    ],
)
def test_readouts_that_cannot_be_built(build, message):
    with pytest.raises(UserError, match=message):
        build()


@pytest.mark.plain
def test_statistics_that_do_not_fit(model):
    with pytest.raises(UserError, match="3 components need as many directions"):
        model.with_readout(Readout("features", components=3), torch.zeros(WIDTH))
    with pytest.raises(UserError, match="a mean of 5 numbers for 8 features"):
        model.with_readout(Readout("features"), torch.zeros(5))
    with pytest.raises(UserError, match="this one is your own"):
        Model(torch.nn.Flatten(), Preprocessing()).with_readout(Readout("features"), torch.zeros(5))
