"""What losses learn beside the network: how it begins, and at which rates it is trained."""

import math

import pytest
import torch

from lookalike import losses


def test_parameter_groups():
    """Some papers give absolute rates, some multiples of the network's rate [math A]; never any decay."""
    rates = {
        "arcface": 5e-4,
        "cosface": 5e-4,
        "normalised_softmax": 1e-5,
        "soft_triple": 1e-5,
        "proxy_nca": 50 * 1e-3,
        "proxy_nca_pp": 100 * 1e-3,
        "proxy_anchor": 100 * 1e-3,
        "hierarchical_proxy": 100 * 1e-3,
        "sub_center_arcface": 5e-4,
        "sphereface": 5e-4,
        "large_margin_softmax": 5e-4,
        "p2s_grad": 5e-4,
        "manifold": 100 * 1e-3,
        "instance": 5e-4,
    }
    for name, rate in rates.items():
        loss = losses.build(name, classes=3, dim=4)
        (group,) = loss.parameter_groups(1e-3)
        assert group["lr"] == pytest.approx(rate), name
        assert group["weight_decay"] == 0, name
        assert {id(p) for p in group["params"]} == {id(p) for p in loss.parameters()}, name
    (group,) = losses.build("soft_triple", preset="cub", classes=3, dim=4).parameter_groups(1e-3)
    assert group["lr"] == pytest.approx(0.1)
    (group,) = losses.build("normalised_softmax", preset="sop", classes=3, dim=4).parameter_groups(1e-3)
    assert group["lr"] == pytest.approx(2e-3)
    (group,) = losses.SigLIP(rate_factor=3.0).parameter_groups(1e-3)
    assert group["lr"] == pytest.approx(3e-3)


def test_initial_weights():
    torch.manual_seed(0)
    for name in (
        "arcface",
        "cosface",
        "sub_center_arcface",
        "sphereface",
        "instance",
        "p2s_grad",
        "normalised_softmax",
    ):
        loss = losses.build(name, classes=200, dim=16)
        values = loss.centres if "centres" in dict(loss.named_parameters()) else loss.weights
        assert -0.25 <= values.min() < -0.24, name
        assert 0.24 < values.max() <= 0.25, name
    for name in ("proxy_nca", "proxy_nca_pp"):
        assert losses.build(name, classes=200, dim=16).proxies.std().item() == pytest.approx(1 / 8, rel=0.05), name
    # Kaiming, fan out of a classes × dim matrix: √(2 / classes)
    spread = losses.build("proxy_anchor", classes=200, dim=64).proxies.std().item()
    assert spread == pytest.approx(math.sqrt(2 / 200), rel=0.05)
