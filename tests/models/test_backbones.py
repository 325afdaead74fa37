"""Every backbone: as large as published, its stages named, watched and complete, random only through its seed."""

from hashlib import sha256

import pytest
import torch

from lookalike import models
from lookalike.errors import UserError
from lookalike.models.backbones.stages import Backbone, stage_of

# Parameters with a classifier of 1000 classes: torchvision (ResNet, DenseNet), BVLC (GoogLeNet), Cadene (BN-Inception).
PUBLISHED = {
    "bn_inception": 11_295_240,
    "densenet201": 20_013_928,
    "efficientnet_lite0": 4_652_008,
    "efficientnet_lite1": 5_416_680,
    "efficientnet_lite2": 6_092_072,
    "googlenet": 6_998_552,
    "resnet18": 11_689_512,
    "resnet50": 25_557_032,
}
SHAPES = {  # of 64 × 64 pixels
    "bn_inception": (1024, 2, 2),
    "conv4": (64, 4, 4),
    "densenet201": (1920, 2, 2),
    "efficientnet_lite0": (1280, 2, 2),
    "efficientnet_lite1": (1280, 2, 2),
    "efficientnet_lite2": (1280, 2, 2),
    "googlenet": (1024, 2, 2),
    "pixels": (3072, 1, 1),
    "resnet18": (512, 2, 2),
    "resnet50": (2048, 2, 2),
}


@pytest.fixture(scope="module")
def backbones():
    return {name: models.build(name).eval() for name in models.names()}


@pytest.fixture(scope="module")
def images():
    return torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))


def test_the_catalogue_is_what_design_says():
    assert models.names() == sorted(SHAPES)


@pytest.mark.parametrize("name", PUBLISHED)
def test_as_many_parameters_as_published(backbones, name):
    own = sum(parameter.numel() for parameter in backbones[name].parameters())
    assert own + 1000 * (backbones[name].width + 1) == PUBLISHED[name]


@pytest.mark.parametrize("name", SHAPES)
def test_feature_maps_have_the_promised_shape(backbones, images, name):
    with torch.no_grad():
        features = backbones[name](images)
    assert features.shape[1:] == SHAPES[name]
    assert features.shape[1] == backbones[name].width
    assert features.isfinite().all()
    assert features.std() > 1e-4, "random weights must not lose the signal"


@pytest.mark.parametrize("name", SHAPES)
def test_is_a_backbone(backbones, name):
    assert isinstance(backbones[name], Backbone)
    assert backbones[name].preprocessing.channels == 3


@pytest.mark.parametrize("name", SHAPES)
def test_every_parameter_is_in_exactly_one_stage(backbones, name):
    stages = backbones[name].stages
    assigned = set()
    for parameter, _ in backbones[name].named_parameters():
        inside = [stage for stage, starts in stages.items() if parameter.startswith(starts)]
        assert inside == [stage_of(parameter, stages)]
        assigned.update(inside)
    assert assigned == set(stages)


@pytest.mark.parametrize("name", SHAPES)
def test_after_sees_every_stage_in_order_and_its_answer_counts(backbones, images, name):
    visited = []

    def watch(stage, features):
        visited.append(stage)
        return features

    with torch.no_grad():
        plain, watched = backbones[name](images), backbones[name](images, watch)
        assert visited == list(backbones[name].stages)
        torch.testing.assert_close(plain, watched, rtol=0, atol=0)
        for target in visited:
            changed = backbones[name](images, lambda stage, x, target=target: x.flip(0) if stage == target else x)
            torch.testing.assert_close(changed, plain.flip(0))


def test_a_seed_decides_and_the_global_generator_is_left_alone():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    first, again, other = (models.build("conv4", seed=seed).state_dict() for seed in (1, 1, 2))
    assert torch.equal(torch.rand(1), expected)
    weights = "block1.0.weight"
    assert torch.equal(first[weights], again[weights])
    assert not torch.equal(first[weights], other[weights])


def test_conv4_is_four_plain_blocks(images):
    network = models.build("conv4").train()
    x = images
    for number in range(1, 5):
        weight = network.state_dict()[f"block{number}.0.weight"]
        x = torch.nn.functional.conv2d(x, weight, padding=1)
        x = (x - x.mean((0, 2, 3), keepdim=True)) / (x.var((0, 2, 3), keepdim=True, correction=0) + 1e-5).sqrt()
        x = x.clamp(min=0).unfold(2, 2, 2).unfold(3, 2, 2).amax((4, 5))
    torch.testing.assert_close(network(images), x, rtol=1e-4, atol=1e-4)


# Names and shapes of all parameters and buffers. Computed from torchvision 0.28 (ResNet), pretrainedmodels 0.7.4
# (BN-Inception) and the published file (EfficientNet), without their classifiers; that of GoogLeNet is our own.
LAYOUTS = {
    "bn_inception": "95b8559768219525",
    "efficientnet_lite0": "d70cfa1a735f32cc",
    "efficientnet_lite1": "27da7a07cf78a30c",
    "efficientnet_lite2": "6a03a4b8461e0bda",
    "googlenet": "b43688952d2c1300",
    "resnet18": "504739f3083bec5e",
    "resnet50": "c1f7fd3808aa49e7",
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_layout_of_the_state_dict_stays(backbones, name):
    state = backbones[name].state_dict()
    lines = sorted(f"{key} {tuple(value.shape)}" for key, value in state.items())
    assert sha256("\n".join(lines).encode()).hexdigest()[:16] == LAYOUTS[name]


def test_typical_names_of_published_parameters(backbones):
    for name, key in (
        ("bn_inception", "inception_3a_double_3x3_reduce_bn.running_mean"),
        ("bn_inception", "conv1_7x7_s2.bias"),
        ("efficientnet_lite0", "_blocks.15._project_conv.weight"),
        ("googlenet", "inception4e.branch3.1.conv.weight"),
        ("resnet18", "layer2.0.downsample.0.weight"),
        ("resnet50", "layer4.2.bn3.running_var"),
    ):
        assert key in backbones[name].state_dict()


@pytest.mark.parametrize("name", ["conv4", "bn_inception", "efficientnet_lite0", "resnet18"])
@pytest.mark.plain
def test_compiles_without_a_break(name):
    embedder = models.Embedder(models.build(name), 16).eval()
    images = torch.randn(2, 3, 64, 64)
    compiled = torch.compile(embedder, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(images), embedder(images))


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("resnet5", {}, "unknown backbone 'resnet5': did you mean 'resnet50'"),
        ("conv4", {"widht": 3}, "unknown setting of conv4 'widht': did you mean 'width'"),
        ("conv4", {"channels": 4}, "1 or 3 channels, not 4"),
        ("tim:resnet18", {}, "unknown source of backbones 'tim': did you mean 'timm'"),
        ("timm:", {}, "names no network"),
    ],
)
def test_what_cannot_be_built_says_why(name, settings, message):
    with pytest.raises(UserError, match=message) as caught:
        models.build(name, **settings)
    assert "\n" not in str(caught.value)


@pytest.mark.plain
def test_conv4_refuses_images_that_vanish():
    with pytest.raises(UserError, match="at least 16 pixels"):
        models.build("conv4")(torch.zeros(1, 3, 8, 8))
