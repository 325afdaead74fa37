"""SubCenterArcFace: its equation as loops [math A24f], the values of its paper, and what it needs to train."""

import math

import pytest

from tests.losses.cases import CLASS_BATCHES, assert_class_equation
from tests.losses.loops import cross_entropy, dots, mean

DEFAULTS = {"per_class": 3, "margin": 0.5, "scale": 64.0, "learning_rate": 0.0005}
TRAINING = ["optimiser.loss_lr=1e-2"]


def sub_center_arcface(z, y, centres, per_class, gap=0.5, scale=64.0):
    """`centres` class after class, `per_class` of each."""
    cosines = dots(z, centres, "sphere")
    terms = []
    for i, label in enumerate(y):
        logits = []
        for k in range(len(centres) // per_class):
            nearest = max(cosines[i][k * per_class : (k + 1) * per_class], key=lambda x: x.item())
            if k == label:
                theta = nearest.clamp(-1 + 1e-7, 1 - 1e-7).acos()
                nearest = (theta + gap).cos() if theta + gap <= math.pi else theta.cos() - gap * math.sin(gap)
            logits.append(scale * nearest)
        terms.append(cross_entropy(logits, label))
    return mean(terms, z)


FORMS = {
    "default": ({}, lambda z, y, w: sub_center_arcface(z, y, w, 3)),
    "2 1.2": ({"centres": 2, "margin": 1.2, "scale": 9.0}, lambda z, y, w: sub_center_arcface(z, y, w, 2, 1.2, 9.0)),
}


@pytest.mark.parametrize("batch", CLASS_BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_class_equation("sub_center_arcface", *FORMS[form], batch)
