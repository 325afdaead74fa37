"""Networks of timm: maps and tokens, stages, preprocessing. Random weights: nothing is fetched."""

import pytest
import torch
from safetensors.torch import save_file

from lookalike import models
from lookalike.errors import UserError
from lookalike.models import Embedder, Model


def _timm():
    """timm needs torchvision, which needs its operators declared where it was built for another torch."""
    try:
        import timm
    except RuntimeError:
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import timm
    except ImportError:
        pytest.skip("timm is not installed (extra: timm)", allow_module_level=True)
    return timm


timm = _timm()
# A ResNet, a list in a list, tokens, channels last, a stem that is a list, a last convolution behind the pooling.
NAMES = [
    "resnet18",
    "densenet121",
    "vit_tiny_patch16_224",
    "swin_tiny_patch4_window7_224",
    "convnext_atto",
    "mobilenetv3_small_050",
]
SMALLER = {"vit_tiny_patch16_224": {"img_size": 64}, "swin_tiny_patch4_window7_224": {"img_size": 64, "window_size": 2}}


def built(name):
    return models.build(f"timm:{name}", options=SMALLER.get(name, {})).eval()


@pytest.mark.parametrize("name", NAMES)
def test_features_stages_and_gradients(name):
    backbone = built(name)
    pixels = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    visited = []
    with torch.no_grad():
        features = backbone(pixels, lambda stage, x: (visited.append(stage), x)[1])
    assert visited == list(backbone.stages)
    assert 4 <= len(visited) <= 20
    assert features.shape[1 if features.dim() == 4 else 2] == backbone.width
    embedder = Embedder(backbone, 4, "cls" if backbone.prefix_tokens else "avg")
    embedder.freeze(visited[:2])
    embedder(pixels).square().sum().backward()
    for parameter, value in backbone.named_parameters():
        frozen = parameter.startswith(tuple(start for stage in visited[:2] for start in backbone.stages[stage]))
        assert (value.grad is None) == frozen, parameter


def test_features_are_timms_own():
    backbone = built("vit_tiny_patch16_224")
    pixels = torch.randn(1, 3, 64, 64)
    torch.testing.assert_close(backbone(pixels), backbone.network.forward_features(pixels))
    assert (backbone.prefix_tokens, backbone.preprocessing.crop, backbone.preprocessing.mean[0]) == (1, 64, 127.5)


def test_a_file_of_weights_is_read_without_its_classifier(tmp_path):
    whole = timm.create_model("resnet18")
    torch.save(whole.state_dict(), tmp_path / "whole.pth")
    backbone = models.build("timm:resnet18", weights=tmp_path / "whole.pth")
    assert torch.equal(backbone.network.conv1.weight, whole.conv1.weight)


def test_through_a_folder(tmp_path):
    model = Model.create(models.Architecture("timm:convnext_atto", dim=4))
    model.save(tmp_path / "m")
    pixels = torch.zeros(1, 3, 224, 224, dtype=torch.uint8)
    assert torch.equal(Model.load(tmp_path / "m").encode(pixels), model.encode(pixels))
    begun = models.build("timm:convnext_atto", seed=1, weights=tmp_path / "m")  # training continues from its backbone
    saved = model.embedder.backbone.state_dict()
    assert all(torch.equal(value, saved[key]) for key, value in begun.state_dict().items())


def test_a_folder_of_the_hub_is_read_without_a_connection(tmp_path):
    whole = timm.create_model("resnet18")
    save_file(whole.state_dict(), tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text("{}")
    backbone = models.build("timm:resnet18", weights=tmp_path)
    assert torch.equal(backbone.network.conv1.weight, whole.conv1.weight)


def test_options_come_back_with_the_folder(tmp_path):
    settings = {"options": {"img_size": 64}}
    model = Model.create(models.Architecture("timm:vit_tiny_patch16_224", settings, dim=4, pooling="cls"))
    model.save(tmp_path / "m")
    pixels = torch.zeros(1, 3, 64, 64, dtype=torch.uint8)
    assert torch.equal(Model.load(tmp_path / "m").encode(pixels), model.encode(pixels))
    other = Model.create(models.Architecture("timm:resnet18", {"options": {"act_layer": "gelu"}}, dim=4))
    other.save(tmp_path / "o")
    with pytest.raises(UserError, match="the option act_layer is passed to timm"):
        Model.load(tmp_path / "o")
    assert Model.load(tmp_path / "o", trusted=True).fingerprint == other.fingerprint


def test_names_that_do_not_exist():
    with pytest.raises(UserError, match="unknown timm network 'resnet5': did you mean 'resnet5") as caught:
        models.build("timm:resnet5")
    assert len(str(caught.value)) < 200
    with pytest.raises(UserError, match="timm cannot build 'resnet18'"):
        models.build("timm:resnet18", options={"colour": "red"})
