"""Losses with a learnable weight per class against their loops: gradients of embeddings and of the weights."""

import math

import pytest
import torch

from lookalike import losses
from lookalike.losses.margin_softmax import multiplied
from lookalike.targets import Classes
from tests.losses import class_oracles as o
from tests.losses.cases import assert_same, random_rows

LABELS = [4, 0, 4, 1, 1, 4, 3]  # of five classes, one of them absent


def soft_triple_oracle(per_class, **symbols):
    return lambda z, y, w: o.soft_triple(z, y, w, per_class, **symbols)


CASES = {
    "arcface": ({}, o.arcface),
    "arcface 1.2 30": ({"margin": 1.2, "scale": 30.0}, lambda z, y, w: o.arcface(z, y, w, 1.2, 30.0)),
    "cosface": ({}, o.cosface),
    "cosface 0.1": ({"margin": 0.1, "scale": 8.0}, lambda z, y, w: o.cosface(z, y, w, 0.1, 8.0)),
    "normalised_softmax": ({}, lambda z, y, w: o.softmax(z, y, w, 0.05)),
    "proxy_nca": ({}, o.proxy_nca),
    "proxy_nca 1 ball": (
        {"scale": 1.0, "normalise": "ball"},
        lambda z, y, w: o.proxy_nca(z, y, w, 1.0, geometry="ball"),
    ),
    "proxy_nca_pp": ({}, lambda z, y, w: o.softmax(z, y, w, 0.1)),
    "proxy_nca_pp ball": (
        {"normalise": "ball", "temperature": 0.11},
        lambda z, y, w: o.softmax(z, y, w, 0.11, geometry="ball"),
    ),
    "proxy_anchor": ({}, o.proxy_anchor),
    "proxy_anchor 10 0.3": ({"alpha": 10.0, "delta": 0.3}, lambda z, y, w: o.proxy_anchor(z, y, w, 10.0, 0.3)),
    "proxy_anchor ball": ({"normalise": "ball"}, lambda z, y, w: o.proxy_anchor(z, y, w, geometry="ball")),
    "soft_triple": ({}, soft_triple_oracle(2)),
    "soft_triple cars": (
        {"preset": "cars", "centres": 4},
        soft_triple_oracle(4, lam=17.69, ga=19.18, tau=0.0669, de=0.3588),
    ),
    "soft_triple one centre": ({"centres": 1}, soft_triple_oracle(1)),
    "sub_center_arcface": ({}, lambda z, y, w: o.sub_center_arcface(z, y, w, 3)),
    "sub_center_arcface 2 1.2": (
        {"centres": 2, "margin": 1.2, "scale": 9.0},
        lambda z, y, w: o.sub_center_arcface(z, y, w, 2, 1.2, 9.0),
    ),
    "sphereface": ({}, lambda z, y, w: o.large_margin(z, y, w, False)),
    "sphereface 3 sphere": (
        {"margin": 3, "annealing": 5.0, "scale": 20.0, "normalise": "sphere"},
        lambda z, y, w: o.large_margin(z, y, w, False, 3, 5.0, 20.0, "sphere"),
    ),
    "sphereface 1": ({"margin": 1}, lambda z, y, w: o.large_margin(z, y, w, False, 1)),
    "large_margin_softmax": ({}, lambda z, y, w: o.large_margin(z, y, w, True)),
    "large_margin_softmax 2 ball": (
        {"margin": 2, "annealing": 1.0, "scale": 3.0, "normalise": "ball"},
        lambda z, y, w: o.large_margin(z, y, w, True, 2, 1.0, 3.0, "ball"),
    ),
    "manifold": ({}, o.manifold),
    "manifold 0.5 0.3": (
        {"alpha": 0.5, "offset": 0.3, "context_weight": 0.2},
        lambda z, y, w: o.manifold(z, y, w, 0.2, 0.5, 0.3),
    ),
    "p2s_grad": ({}, o.p2s_grad),
    "instance": ({}, o.instance),
    "instance sphere": (
        {"scale": 64.0, "normalise": "sphere"},
        lambda z, y, w: o.instance(z, y, w, 64.0, "sphere"),
    ),
}


def built(name, classes=5, seed=11):
    settings, oracle = CASES[name]
    loss = losses.build(name.split()[0], classes=classes, dim=4, **settings).double()
    (weight,) = loss.parameters()
    with torch.no_grad():
        weight.copy_(random_rows(len(weight), seed=seed))
    return loss, weight, oracle


@pytest.mark.parametrize("name", CASES)
def test_value_and_gradients(name):
    loss, weight, oracle = built(name)
    z = random_rows(len(LABELS), seed=12)
    assert_same(loss(z, torch.tensor(LABELS)), oracle(z, LABELS, weight), [z, weight])
    assert loss(z, Classes(torch.tensor(LABELS))) == loss(z, torch.tensor(LABELS))


@pytest.mark.parametrize("labels", [[2, 2, 2], [0, 1, 2, 3, 4], [3]])
@pytest.mark.parametrize("name", CASES)
def test_odd_batches(name, labels):
    loss, weight, oracle = built(name)
    z = random_rows(len(labels), seed=13)
    assert_same(loss(z, torch.tensor(labels)), oracle(z, labels, weight), [z, weight])


@pytest.mark.parametrize("name", CASES)
def test_one_class_overall(name):
    """Cross entropy over one class is 0, Proxy-NCA without negatives is 0, Proxy-Anchor keeps its pull [math A21]."""
    loss, weight, oracle = built(name, classes=1)
    z = random_rows(3, seed=14)
    value = loss(z, torch.tensor([0, 0, 0]))
    assert_same(value, oracle(z, [0, 0, 0], weight), [z, weight])
    if name.split()[0] not in ("proxy_anchor", "soft_triple", "p2s_grad"):
        assert value == 0


@pytest.mark.parametrize("gap", [0.1, 0.5, 1.2, 2.0])
def test_arcface_stays_monotone_beyond_pi(gap):
    """The logit of the own class falls with the angle all the way to π (true for margins below 2.33)."""
    loss = losses.ArcFace(classes=2, dim=2, margin=gap).double()
    with torch.no_grad():
        loss.centres.copy_(torch.eye(2))
    angles = torch.linspace(0.01, math.pi - 0.01, 80, dtype=torch.float64)
    rows = torch.stack([angles.cos(), angles.sin()], 1)
    values = torch.stack([loss(row[None], torch.tensor([0])) for row in rows])
    own = 16 * angles.sin() - values.expm1().log()  # CE = log(1 + e^{other − own})
    assert (own.diff() < 0).all()


@pytest.mark.parametrize("times", [1, 2, 3, 4, 7])
def test_multiplied_angles_fall_all_the_way_and_leave_no_step(times):
    """ψ runs from 1 to 1 − 2m, and its slope is finite at 0 and π, where that of an angle is not."""
    angles = torch.linspace(0, math.pi, 3001, dtype=torch.float64)
    cosines = angles.cos().requires_grad_()
    values = multiplied(cosines, times)
    assert values[0].item() == pytest.approx(1)
    assert values[-1].item() == pytest.approx(1 - 2 * times)
    assert (values.diff() <= 1e-12).all()
    assert values.diff().abs().max() < 2e-3 * times
    assert torch.autograd.grad(values.sum(), cosines)[0].isfinite().all()


def test_p2s_grad_has_the_gradient_of_the_paper():
    loss, weight, _ = built("p2s_grad")
    z = random_rows(len(LABELS), seed=12)
    units, centres = (v / v.norm(dim=1, keepdim=True) for v in (z, weight))
    cosines = units @ centres.T
    slopes = cosines.detach() - torch.nn.functional.one_hot(torch.tensor(LABELS), 5)
    expected = torch.autograd.grad((slopes * cosines).sum() / len(LABELS), z)[0]
    torch.testing.assert_close(torch.autograd.grad(loss(z, torch.tensor(LABELS)), z)[0], expected)


def test_manifold_deals_many_classes_to_few_proxies():
    loss = losses.Manifold(classes=7, dim=4, proxies=3).double()
    assert loss.proxies.shape == (3, 4)
    assert sorted(loss.metaclass.tolist()) == [0, 0, 0, 1, 1, 2, 2]
    z, labels = random_rows(6, seed=15), [6, 0, 3, 3, 5, 1]
    expected = o.manifold(z, loss.metaclass[torch.tensor(labels)].tolist(), loss.proxies)
    assert_same(loss(z, torch.tensor(labels)), expected, [z, loss.proxies])


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


class TestHierarchicalProxy:
    def test_both_levels(self):
        loss = losses.HierarchicalProxy(classes=5, dim=4, coarse=2).double()
        with torch.no_grad():
            loss.proxies.copy_(random_rows(5, seed=20))
            loss.coarse_proxies.copy_(random_rows(2, seed=21))
        loss.cluster.copy_(torch.tensor([0, 1, 1, 0, 1]))
        loss.clustered.fill_(True)
        z = random_rows(len(LABELS), seed=22)
        expected = o.hierarchical(z, LABELS, loss.proxies, loss.coarse_proxies, [0, 1, 1, 0, 1])
        assert_same(loss(z, torch.tensor(LABELS)), expected, [z, loss.proxies, loss.coarse_proxies])

    def test_only_the_fine_level_before_the_first_clustering(self):
        loss = losses.HierarchicalProxy(classes=5, dim=4).double()
        loss.epoch_started(0, torch.Generator().manual_seed(0))
        z = random_rows(len(LABELS), seed=22)
        value, expected = loss(z, torch.tensor(LABELS)), o.proxy_anchor(z, LABELS, loss.proxies)
        assert_same(value, expected, [z, loss.proxies, loss.coarse_proxies])

    def test_clusters_are_those_of_the_nearest_unit_centroid(self):
        loss = losses.HierarchicalProxy(classes=30, dim=4).double()
        loss.epoch_started(1, torch.Generator().manual_seed(0))
        assert loss.coarse_proxies.shape == (5, 4)  # round(√30)
        units = loss.proxies.detach() / loss.proxies.detach().norm(dim=1, keepdim=True)
        centroids = loss.coarse_proxies.detach()
        torch.testing.assert_close(centroids.norm(dim=1), torch.ones(5, dtype=torch.float64))
        assert torch.equal((units @ centroids.T).argmax(1), loss.cluster)
        for cluster in range(5):
            members = units[loss.cluster == cluster]
            if len(members):
                mean = members.sum(0) / members.sum(0).norm()
                torch.testing.assert_close(centroids[cluster], mean)

    def test_clusters_every_few_epochs_and_free_between(self):
        loss = losses.HierarchicalProxy(classes=9, dim=4, every=2)
        changed = []
        for epoch in range(6):
            with torch.no_grad():
                loss.coarse_proxies.fill_(7.0)
            loss.epoch_started(epoch, torch.Generator().manual_seed(epoch))
            changed.append(bool((loss.coarse_proxies != 7.0).any()))
        assert changed == [False, True, False, True, False, True]
        assert loss.coarse_proxies.requires_grad
