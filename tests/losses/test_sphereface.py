"""SphereFace: its equation as loops [math A24g], the values of its paper, and what it needs to train."""

import math

import pytest
import torch

from lookalike.losses.margin_softmax import multiplied
from tests.losses.cases import CLASS_BATCHES, assert_class_equation
from tests.losses.loops import cross_entropy, dots, mean, placed

DEFAULTS = {"margin": 4, "annealing": 0.0, "scale": 1.0, "normalise": "none"}
TRAINING = ["optimiser.loss_lr=1e-2", "loss.annealing=5.0"]


def psi(cosine, times, lam):
    theta = cosine.acos()
    k = min(int(theta * times / math.pi), times - 1)
    return (lam * cosine + (-1) ** k * (times * theta).cos() - 2 * k) / (1 + lam)


def large_margin(z, y, weights, lengths, times=4, lam=0.0, scale=1.0, geometry="none"):
    """SphereFace and large-margin softmax; `lengths`: whether those of the weights count."""
    cosines = dots(z, weights, "sphere")
    long = [placed(v, geometry).norm() for v in z]
    wide = [placed(w, geometry).norm() if lengths else 1.0 for w in weights]
    terms = []
    for i, label in enumerate(y):
        moved = [psi(x, times, lam) if k == label else x for k, x in enumerate(cosines[i])]
        terms.append(cross_entropy([scale * long[i] * wide[k] * x for k, x in enumerate(moved)], label))
    return mean(terms, z)


FORMS = {
    "default": ({}, lambda z, y, w: large_margin(z, y, w, False)),
    "3 sphere": (
        {"margin": 3, "annealing": 5.0, "scale": 20.0, "normalise": "sphere"},
        lambda z, y, w: large_margin(z, y, w, False, 3, 5.0, 20.0, "sphere"),
    ),
    "1": ({"margin": 1}, lambda z, y, w: large_margin(z, y, w, False, 1)),
}


@pytest.mark.parametrize("batch", CLASS_BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_class_equation("sphereface", *FORMS[form], batch)


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
