"""The embedder: pooling by its formula, and frozen is frozen."""

import pytest
import torch
from torch import nn

from lookalike import models
from lookalike.errors import UserError
from lookalike.models import Embedder, Unfreezing, up_to
from lookalike.models.pooling import POOLINGS, GeM


def images(count=4, channels=3, size=32, seed=0):
    return torch.randn(count, channels, size, size, generator=torch.Generator().manual_seed(seed))


def small(**settings):
    return Embedder(models.build("conv4", width=8), 4, **settings)


def trained_one_step(embedder):
    before = {key: value.clone() for key, value in embedder.state_dict().items()}
    optimiser = torch.optim.SGD(embedder.parameters(), lr=0.5)
    embedder.train()
    embedder(images()).square().sum().backward()
    optimiser.step()
    return {key for key, value in embedder.state_dict().items() if not torch.equal(value, before[key])}


def test_batch_norm_modes():
    everything = set(small().state_dict())
    statistics = {key for key in everything if "running" in key or "tracked" in key}
    affine = {key for key in everything if key.startswith("backbone.") and ".1." in key} - statistics
    assert len(statistics) == 12
    assert len(affine) == 8
    assert trained_one_step(small()) == everything
    assert trained_one_step(small(batch_norm="frozen_statistics")) == everything - statistics
    assert trained_one_step(small(batch_norm="frozen")) == everything - statistics - affine


@pytest.mark.parametrize("mode", ["frozen_statistics", "frozen"])
def test_with_frozen_statistics_an_image_does_not_depend_on_its_batch(mode):
    embedder = small(batch_norm=mode).train()
    together = embedder(images())
    torch.testing.assert_close(embedder(images()[:1]), together[:1])
    assert not torch.allclose(small().train()(images()[:2])[:1], small().train()(images())[:1])


def test_frozen_stages_do_not_change():
    embedder = small()
    embedder.freeze(["block1", "block2"])
    changed = trained_one_step(embedder)
    assert not [key for key in changed if "block1" in key or "block2" in key]
    assert any("block3" in key for key in changed)
    embedder.freeze([])
    assert any("block1" in key for key in trained_one_step(embedder))


def test_freezing_everything_leaves_the_head():
    embedder = small()
    embedder.freeze(embedder.backbone.stages)
    assert trained_one_step(embedder) == {"head.linear.weight", "head.linear.bias"}


def test_eval_and_train_go_back_and_forth():
    embedder = small(batch_norm="frozen_statistics")
    embedder.freeze(["block1"])
    embedder.eval().train()
    training = {name for name, module in embedder.backbone.named_modules() if module.training and name}
    assert "block1" not in training
    assert "block2" in training
    assert "block2.1" not in training


def test_unfreezing_proceeds_from_the_head_downwards():
    stages = ["a", "b", "c"]
    at_once = Unfreezing(epoch=2)
    assert [at_once.frozen_at(epoch, stages) for epoch in range(3)] == [("a", "b", "c"), ("a", "b", "c"), ()]
    slowly = Unfreezing(epoch=0, every=1)
    assert [slowly.frozen_at(epoch, stages) for epoch in range(5)] == [("a", "b"), ("a",), (), (), ()]
    assert up_to("b", stages) == ("a", "b")


def test_features_and_head_are_the_embedding():
    embedder = small(layer_norm=True, pooling="gem").eval()
    x = images()
    torch.testing.assert_close(embedder.head(embedder.features(x)), embedder(x))
    features = embedder.features(x)
    standard = (features - features.mean(1, keepdim=True)) / (features.var(1, keepdim=True, correction=0) + 1e-5).sqrt()
    torch.testing.assert_close(embedder(x), standard @ embedder.head.linear.weight.T + embedder.head.linear.bias)


def test_without_a_head_the_features_themselves():
    embedder = Embedder(models.build("conv4", width=8), dim=None).eval()
    assert embedder.dim == 8
    torch.testing.assert_close(embedder(images()), embedder.backbone(images()).mean((2, 3)))


def test_glorot_and_bias():
    head = small(init="glorot", bias=False).head.linear
    assert head.bias is None
    bound = (6 / (8 + 4)) ** 0.5
    assert head.weight.abs().max() <= bound
    wide = Embedder(models.build("conv4", width=64), 512, init="glorot").head.linear
    assert wide.weight.std().item() == pytest.approx((2 / (64 + 512)) ** 0.5, rel=0.05)
    assert (wide.bias == 0).all()


def test_after_mixes_in_the_middle():
    embedder = small(batch_norm="frozen_statistics").eval()
    x, swapped = images(), torch.tensor([1, 0, 3, 2])
    mixed = embedder(x, after=lambda stage, h: 0.3 * h + 0.7 * h[swapped] if stage == "block2" else h)
    first_two, last_two = embedder.backbone.block1, embedder.backbone.block2
    h = last_two(first_two(x))
    h = embedder.backbone.block4(embedder.backbone.block3(0.3 * h + 0.7 * h[swapped]))
    torch.testing.assert_close(mixed, embedder.head(h.mean((2, 3))))


def test_pooling_is_its_formula():
    maps = torch.rand(2, 5, 3, 4, generator=torch.Generator().manual_seed(1))
    tokens = maps.flatten(2).transpose(1, 2)
    expected = {
        "avg": maps.mean((2, 3)),
        "avg_max": maps.mean((2, 3)) + maps.amax((2, 3)),
        "gem": (maps**3).mean((2, 3)) ** (1 / 3),
    }
    for name, value in expected.items():
        torch.testing.assert_close(POOLINGS[name]()(maps), value)
        prefixed = torch.cat([torch.full((2, 2, 5), 9.0), tokens], 1)
        torch.testing.assert_close(POOLINGS[name]()(prefixed, 2), value)
    assert (POOLINGS["cls"]()(torch.cat([torch.full((2, 1, 5), 9.0), tokens], 1), 1) == 9).all()


def test_gem_learns_its_power():
    gem = GeM()
    gem(torch.rand(2, 5, 3, 3)).sum().backward()
    assert gem.power.grad is not None
    assert gem(torch.zeros(1, 2, 3, 3)).isfinite().all()


def test_parameter_groups_cover_every_parameter_once():
    embedder = small(pooling="gem")
    groups = list(embedder.parameter_groups(1e-5, head_lr=1e-4, weight_decay=4e-4))
    assert [(group["name"], group["lr"], group["weight_decay"]) for group in groups] == [
        ("backbone", 1e-5, 4e-4),
        ("head", 1e-4, 4e-4),
    ]
    listed = [parameter for group in groups for parameter in group["params"]]
    assert len(listed) == len(set(map(id, listed))) == len(list(embedder.parameters()))
    torch.optim.AdamW(groups)
    bare = Embedder(models.build("conv4"), dim=None)
    assert [group["name"] for group in bare.parameter_groups(0.1)] == ["backbone"]


def test_the_layout_in_memory_changes_nothing():
    embedder = small().eval()
    x = images()
    torch.testing.assert_close(embedder(x), embedder(x.contiguous(memory_format=torch.channels_last)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pooling": "average"}, "unknown pooling 'average': did you mean 'avg'"),
        ({"init": "xavier"}, "unknown initialisation 'xavier'"),
        ({"batch_norm": "frozn"}, "unknown batch normalisation 'frozn': did you mean 'frozen'"),
    ],
)
@pytest.mark.plain
def test_settings_that_do_not_exist(settings, message):
    with pytest.raises(UserError, match=message):
        small(**settings)


@pytest.mark.plain
def test_impossible_embedders_are_refused():
    with pytest.raises(UserError, match="at least one dimension, not 0"):
        Embedder(models.build("conv4"), 0)
    with pytest.raises(UserError, match="unknown stage 'blok1': did you mean 'block1'"):
        small().freeze(["blok1"])
    with pytest.raises(UserError, match="no class token: choose pooling avg"):
        small(pooling="cls")(images())
    with pytest.raises(UserError, match="unknown stage"):
        up_to("z", ["a"])
    with pytest.raises(UserError, match="starts at epoch 0 or later"):
        Unfreezing(epoch=-1)
    with pytest.raises(UserError, match="power of the generalised mean"):
        GeM(0.0)
    assert isinstance(small(), nn.Module)


def test_a_head_with_a_hidden_layer():
    embedder = small(hidden=6, init="glorot", bias=False)
    assert {key for key in embedder.state_dict() if key.startswith("head.")} == {
        "head.hidden.weight",
        "head.hidden.bias",
        "head.linear.weight",
    }
    features = embedder.features(images())
    first, second = embedder.head.hidden, embedder.head.linear
    expected = torch.relu(features @ first.weight.T + first.bias) @ second.weight.T
    torch.testing.assert_close(embedder(images()), expected)
    with pytest.raises(UserError, match="at least one neuron"):
        small(hidden=0)
    with pytest.raises(UserError, match="set dim"):
        Embedder(models.build("conv4", width=8), None, hidden=6)
