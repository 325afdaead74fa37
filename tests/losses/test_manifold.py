"""Manifold: its equation as loops [math A24o], the values of its paper, and what it needs to train."""

import pytest
import torch

from lookalike import losses
from tests.losses.cases import CLASS_BATCHES, assert_class_equation, assert_same, random_rows
from tests.losses.loops import dots, hinge, log_one_plus

DEFAULTS = {"context_weight": 1.0, "alpha": 0.8, "offset": 0.0005, "rate_factor": 100.0}
TRAINING = ["optimiser.loss_lr=1e-2", "loss.context_weight=0.1"]  # its context alone is content where all are alike


def manifold(z, y, proxies, lam=1.0, al=0.8, gap=5e-4, geometry="sphere"):
    """The walk step by step: 160 steps leave 0.8^160 of it."""
    nodes = [*z, *proxies]
    S = dots(nodes, nodes, geometry)
    count, size = len(nodes), len(z)
    near = [[(2 * hinge(S[i][j])).exp() if i != j else 0 * S[i][j] for j in range(count)] for i in range(count)]
    degree = [sum(row) for row in near]
    step = torch.stack(
        [torch.stack([near[i][j] / (degree[i] * degree[j]).sqrt() for j in range(count)]) for i in range(count)]
    )
    ranks = walk = torch.eye(count, dtype=torch.float64) * (1 - al)
    for _ in range(160):
        walk = al * step @ walk
        ranks = ranks + walk
    terms = []
    for i, label in enumerate(y):
        intrinsic = [ranks[i][size + k] for k in range(len(proxies))]
        context = [
            (ranks[i] * ranks[size + k]).sum() / (ranks[i].norm() * ranks[size + k].norm()) for k in range(len(proxies))
        ]
        for weight, f in ((1.0, intrinsic), (lam, context)):
            excess = [f[k] - f[label] + gap for k in range(len(f)) if k != label]
            terms.append(weight * log_one_plus([x for x in excess if x >= 0]) + 0 * z.sum())
    return sum(terms) / size


FORMS = {
    "default": ({}, manifold),
    "0.5 0.3": ({"alpha": 0.5, "offset": 0.3, "context_weight": 0.2}, lambda z, y, w: manifold(z, y, w, 0.2, 0.5, 0.3)),
}


@pytest.mark.parametrize("batch", CLASS_BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_class_equation("manifold", *FORMS[form], batch)


def test_manifold_deals_many_classes_to_few_proxies():
    loss = losses.Manifold(classes=7, dim=4, proxies=3).double()
    assert loss.proxies.shape == (3, 4)
    assert sorted(loss.metaclass.tolist()) == [0, 0, 0, 1, 1, 2, 2]
    z, labels = random_rows(6, seed=15), [6, 0, 3, 3, 5, 1]
    expected = manifold(z, loss.metaclass[torch.tensor(labels)].tolist(), loss.proxies)
    assert_same(loss(z, torch.tensor(labels)), expected, [z, loss.proxies])
