"""CosFace: its equation as loops [math A22], the values of its paper, and what it needs to train."""

import pytest

from tests.losses.cases import CLASS_BATCHES, assert_class_equation
from tests.losses.loops import cross_entropy, dots, mean

DEFAULTS = {"margin": 0.35, "scale": 64.0}
TRAINING = ["optimiser.loss_lr=1e-2"]


def cosface(z, y, centres, gap=0.35, scale=64.0, geometry="sphere"):
    cosines = dots(z, centres, geometry)
    terms = []
    for i, label in enumerate(y):
        logits = [scale * (x - (gap if k == label else 0.0)) for k, x in enumerate(cosines[i])]
        terms.append(cross_entropy(logits, label))
    return mean(terms, z)


FORMS = {
    "default": ({}, cosface),
    "0.1": ({"margin": 0.1, "scale": 8.0}, lambda z, y, w: cosface(z, y, w, 0.1, 8.0)),
}


@pytest.mark.parametrize("batch", CLASS_BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_class_equation("cosface", *FORMS[form], batch)
