"""Networks of transformers, small ones saved to disk: tokens, stages, preprocessing, and a way back from a folder."""

import copy
import json
import shutil

import numpy as np
import pytest
import torch

from lookalike import models
from lookalike.errors import UserError
from lookalike.models import Architecture, Embedder, Model
from tests.missing import missing

try:
    import transformers
except ImportError:
    missing("transformers is not installed (extra: hf)")

from tests.fixtures.tiny_networks import CONFIGS, write

PREFIX = {"dinov2": 1, "dinov2_with_registers": 5, "vit": 1, "clip": 1, "siglip": 0, "convnext": 0, "resnet": 0}


@pytest.fixture(scope="module", autouse=True)
def offline():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Every kind of network, with weights and processor, as its folder; and the network itself."""
    folders = {}
    for kind in CONFIGS:
        folder = tmp_path_factory.mktemp(kind)
        folders[kind] = folder, write(kind, folder)
    return folders


@pytest.fixture(scope="module")
def pixels():
    return torch.randn(2, 3, 56, 56, generator=torch.Generator().manual_seed(0))


def whole(network, pixels):
    options = (
        {}
        if "dinov2" in network.config.model_type or hasattr(network.config, "depths")
        else {"interpolate_pos_encoding": True}
    )
    with torch.no_grad():
        return network(pixel_values=pixels, **options)


@pytest.mark.parametrize("kind", CONFIGS)
def test_features_are_the_networks_own(saved, pixels, kind):
    folder, network = saved[kind]
    backbone = models.build(f"hf:{folder}", weights="pretrained").eval()
    with torch.no_grad():
        features = backbone(pixels)
    expected = whole(network, pixels)
    assert backbone.prefix_tokens == PREFIX[kind]
    if kind in ("siglip", "vit", "resnet"):
        torch.testing.assert_close(features, expected.last_hidden_state)
    elif kind == "convnext":
        moved = expected.last_hidden_state.permute(0, 2, 3, 1)
        torch.testing.assert_close(features, network.layernorm(moved).permute(0, 3, 1, 2))
    else:
        torch.testing.assert_close(Embedder(backbone, None, "cls").eval()(pixels), expected.pooler_output)


@pytest.mark.parametrize("kind", CONFIGS)
def test_stages_are_seen_in_order_and_hold_every_parameter(saved, pixels, kind):
    backbone = models.build(f"hf:{saved[kind][0]}").eval()
    visited = []
    with torch.no_grad():
        backbone(pixels, lambda stage, x: (visited.append(stage), x)[1])
        assert visited == list(backbone.stages)
        plain = backbone(pixels)
        for target in visited:
            swapped = backbone(pixels, lambda stage, x, target=target: x.flip(0) if stage == target else x)
            torch.testing.assert_close(swapped, plain.flip(0))
    Embedder(backbone, 4).freeze(backbone.stages)
    assert not [name for name, parameter in backbone.named_parameters() if parameter.requires_grad]


@pytest.mark.parametrize("kind", CONFIGS)
def test_a_saved_model_needs_nothing_of_its_source(saved, tmp_path, kind):
    source = tmp_path / "source"
    shutil.copytree(saved[kind][0], source)
    model = Model.create(Architecture(f"hf:{source}", dim=4), weights="pretrained")
    assert (model.preprocessing.resize, model.preprocessing.crop) == (64, 56)
    assert model.preprocessing.mean == pytest.approx((127.5, 102.0, 76.5))
    images = np.random.default_rng(0).integers(0, 256, (3, 70, 90, 3), dtype=np.uint8)
    expected = model.encode(images)
    model.save(tmp_path / "m")
    shutil.rmtree(source)
    assert torch.equal(Model.load(tmp_path / "m").encode(images), expected)


def test_a_source_that_does_not_exist(tmp_path, saved):
    with pytest.raises(UserError, match="there is no network hf:") as caught:
        models.build(f"hf:{tmp_path / 'absent'}")
    assert "\n" not in str(caught.value)
    bare = tmp_path / "bare"
    shutil.copytree(saved["vit"][0], bare)
    (bare / "preprocessor_config.json").unlink()
    with pytest.raises(UserError, match=r"has no preprocessor_config\.json: copy it .* --set .model\.preprocessing="):
        models.build(f"hf:{bare}")
    assert models.build(f"hf:{bare}", preprocessing={"crop": 28, "resize": 28}).preprocessing.crop == 28
    (bare / "model.safetensors").unlink()
    with pytest.raises(UserError, match="transformers cannot build"):
        models.build(f"hf:{bare}", weights="pretrained", preprocessing={"crop": 28, "resize": 28})
    with pytest.raises(UserError, match=r"no weights at a\.pth"):
        models.build(f"hf:{bare}", weights="a.pth", preprocessing={"crop": 28, "resize": 28})


@pytest.mark.parametrize("kind", CONFIGS)
def test_local_weights_need_no_connection(saved, tmp_path, kind):
    """A file, a folder of transformers, and a saved model, under a name that exists nowhere."""
    folder = saved[kind][0]
    expected = models.build(f"hf:{folder}", weights="pretrained").state_dict()
    Model.create(Architecture(f"hf:{folder}", dim=4), weights="pretrained").save(tmp_path / "m")
    settings = {"config": models.build(f"hf:{folder}").rebuild["config"], "preprocessing": {"crop": 28, "resize": 28}}
    for built in (
        models.build("hf:nobody/nothing", weights=folder),
        models.build("hf:nobody/nothing", weights=tmp_path / "m", seed=3),
        models.build("hf:nobody/nothing", weights=folder / "model.safetensors", **settings),
    ):
        state = built.state_dict()
        assert all(torch.equal(value, state[key]) for key, value in expected.items())


def test_a_tampered_config_gives_only_what_its_type_knows(saved, tmp_path):
    model = Model.create(Architecture(f"hf:{saved['vit'][0]}", dim=4), weights="pretrained")
    model.save(tmp_path / "m")
    file = tmp_path / "m" / "model.json"
    values = json.loads(file.read_text())
    del values["fingerprint"]
    images = np.random.default_rng(0).integers(0, 256, (2, 70, 90, 3), dtype=np.uint8)
    values["architecture"]["settings"]["config"] |= {
        "auto_map": {"AutoModel": "code.Model"},
        "attn_implementation": "someone/kernels",
        "_attn_implementation": "someone/kernels",
        "_name_or_path": "someone/network",
        "quantization_config": {"quant_method": "x"},
        "trust_remote_code": True,
        "use_pretrained_backbone": True,
    }
    file.write_text(json.dumps(values))
    assert torch.equal(Model.load(tmp_path / "m").encode(images), model.encode(images))
    refused = 0
    for key in values["architecture"]["settings"]["config"]:
        for value in (None, -1, 0, 10**30, 1e308, "x", "a/b", [], {}, True):
            changed = copy.deepcopy(values)
            changed["architecture"]["settings"]["config"][key] = value
            file.write_text(json.dumps(changed))
            try:
                Model.load(tmp_path / "m").encode(images)
            except UserError as error:
                refused += "\n" not in str(error)
    assert refused > 20


def test_a_network_that_does_not_look_at_images(tmp_path):
    transformers.AutoConfig.for_model("bart", d_model=8, encoder_layers=1, decoder_layers=1).save_pretrained(tmp_path)
    with pytest.raises(UserError):
        models.build(f"hf:{tmp_path}", preprocessing={"crop": 28, "resize": 28})
