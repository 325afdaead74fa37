"""ArcFace: its equation as loops [math A6], the values of its paper, and what it needs to train."""

import math

import pytest
import torch

from lookalike import losses
from tests.losses.cases import CLASS_BATCHES, assert_class_equation
from tests.losses.loops import cross_entropy, dots, mean

DEFAULTS = {"margin": 0.5, "scale": 16.0}
TRAINING = ["optimiser.loss_lr=1e-2"]


def arcface(z, y, centres, gap=0.5, scale=16.0, geometry="sphere"):
    cosines = dots(z, centres, geometry)
    terms = []
    for i, label in enumerate(y):
        own = cosines[i][label].clamp(-1 + 1e-7, 1 - 1e-7)
        theta = own.acos()
        widened = (theta + gap).cos() if theta + gap <= math.pi else own - gap * math.sin(gap)
        terms.append(cross_entropy([scale * (widened if k == label else x) for k, x in enumerate(cosines[i])], label))
    return mean(terms, z)


FORMS = {
    "default": ({}, arcface),
    "1.2 30": ({"margin": 1.2, "scale": 30.0}, lambda z, y, w: arcface(z, y, w, 1.2, 30.0)),
}


@pytest.mark.parametrize("batch", CLASS_BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_class_equation("arcface", *FORMS[form], batch)


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
