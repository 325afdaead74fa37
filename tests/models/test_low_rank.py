"""Matrices of low rank beside the linear layers: nothing changes before they learn, nor when they are merged."""

import pytest
import torch

from lookalike.errors import UserError
from lookalike.models import Architecture, Model
from tests.missing import missing

try:
    import transformers  # noqa: F401
except ImportError:
    missing("transformers is not installed (extra: hf)")

from tests.fixtures.tiny_networks import write


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dinov2")
    write("dinov2", folder)
    return folder


@pytest.fixture
def model(source):
    return Model.create(Architecture(f"hf:{source}", dim=8, pooling="cls_avg"), weights="pretrained")


@pytest.fixture
def images():
    return torch.randint(0, 256, (3, 3, 64, 64), generator=torch.Generator().manual_seed(1), dtype=torch.uint8)


def learn(embedder):
    """Something in the place of training."""
    generator = torch.Generator().manual_seed(2)
    for parameter in embedder.backbone.parameters():
        if parameter.requires_grad:
            parameter.data.normal_(0, 0.2, generator=generator)


def test_merged_is_unmerged_and_before_training_nothing_changes(model, images, tmp_path):
    plain, names, fingerprint = model.encode(images), list(model.embedder.state_dict()), model.fingerprint
    model.embedder.adapt(4)
    assert torch.equal(model.encode(images), plain)
    assert model.fingerprint == fingerprint
    learn(model.embedder)
    learnt = model.encode(images)
    assert (learnt - plain).abs().max() > 0.01
    model.save(tmp_path / "m")
    fingerprint = model.fingerprint
    model.embedder.merge()
    assert model.fingerprint == fingerprint
    assert list(model.embedder.state_dict()) == names
    torch.testing.assert_close(model.encode(images), learnt, rtol=0, atol=1e-5)
    assert torch.equal(Model.load(tmp_path / "m").encode(images), model.encode(images))


def test_the_exported_graph_gives_what_the_adapted_network_gave(model, images):
    pytest.importorskip("onnxruntime")
    model.embedder.adapt(4)
    learn(model.embedder)
    expected = model.encode(images)
    model.embedder.merge()
    torch.testing.assert_close(model.encode(images, backend="onnx"), expected, rtol=0, atol=1e-5)


def test_only_the_matrices_of_later_stages_learn(model):
    embedder = model.embedder
    first = list(embedder.backbone.stages)[:2]
    embedder.freeze(first)
    embedder.adapt(2)
    learning = [name for name, value in embedder.backbone.named_parameters() if value.requires_grad]
    assert len(learning) == 2 * 6  # query, key, value, output, and two layers of the MLP
    assert all(name.startswith("network.encoder.layer.1.") and name.endswith((".down", ".up")) for name in learning)
    embedder.merge()
    learning = {name for name, value in embedder.backbone.named_parameters() if value.requires_grad}
    later = ("network.encoder.layer.1.", "network.layernorm.")
    assert learning == {name for name, _ in embedder.backbone.named_parameters() if name.startswith(later)}


def test_later_stages_learn_faster(model):
    rates = {}
    for group in model.embedder.parameter_groups(1.0, stage_decay=0.5):
        rates |= {id(parameter): group["lr"] for parameter in group["params"]}
    named = {name: rates[id(value)] for name, value in model.embedder.backbone.named_parameters()}
    assert named["network.layernorm.weight"] == 1
    assert named["network.encoder.layer.1.mlp.fc1.weight"] == 0.5
    assert named["network.embeddings.cls_token"] == 0.125


def test_a_network_without_linear_layers_is_refused():
    with pytest.raises(UserError, match=r"no linear layer of this backbone learns, which model\.lora needs"):
        Model.create(Architecture("conv4")).embedder.adapt(4)
