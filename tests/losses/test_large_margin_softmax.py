"""LargeMarginSoftmax: its equation as loops [math A24h], the values of its paper, and what it needs to train."""

import pytest

from tests.losses.cases import CLASS_BATCHES, assert_class_equation
from tests.losses.test_sphereface import large_margin

DEFAULTS = {"margin": 4, "annealing": 0.0, "scale": 1.0, "normalise": "none"}
TRAINING = ["optimiser.loss_lr=1e-2", "loss.annealing=5.0"]


FORMS = {
    "default": ({}, lambda z, y, w: large_margin(z, y, w, True)),
    "2 ball": (
        {"margin": 2, "annealing": 1.0, "scale": 3.0, "normalise": "ball"},
        lambda z, y, w: large_margin(z, y, w, True, 2, 1.0, 3.0, "ball"),
    ),
}


@pytest.mark.parametrize("batch", CLASS_BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_class_equation("large_margin_softmax", *FORMS[form], batch)
