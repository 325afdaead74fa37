"""Instance: its equation as loops [math A24j], the values of its paper, and what it needs to train."""

import pytest

from tests.losses.cases import CLASS_BATCHES, assert_class_equation
from tests.losses.loops import cross_entropy, dots, mean

DEFAULTS = {"scale": 1.0, "normalise": "none"}
TRAINING = ["optimiser.loss_lr=1e-2"]


def instance(z, y, weights, scale=1.0, geometry="none"):
    S = dots(z, weights, geometry)
    return mean([cross_entropy([scale * x for x in S[i]], label) for i, label in enumerate(y)], z)


FORMS = {
    "default": ({}, instance),
    "sphere": ({"scale": 64.0, "normalise": "sphere"}, lambda z, y, w: instance(z, y, w, 64.0, "sphere")),
}


@pytest.mark.parametrize("batch", CLASS_BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_class_equation("instance", *FORMS[form], batch)
