"""ProxyNCAPP: its equation as loops [math A13b], the values of its paper, and what it needs to train."""

import pytest

from tests.losses.cases import CLASS_BATCHES, assert_class_equation
from tests.losses.loops import cross_entropy, dots, mean

DEFAULTS = {"temperature": 0.1, "rate_factor": 100.0}
TRAINING = ["optimiser.loss_lr=1e-2"]


def softmax(z, y, proxies, temperature, geometry="sphere"):
    """ProxyNCA++ and normalised softmax."""
    S = dots(z, proxies, geometry)
    return mean([cross_entropy([x / temperature for x in S[i]], label) for i, label in enumerate(y)], z)


FORMS = {
    "default": ({}, lambda z, y, w: softmax(z, y, w, 0.1)),
    "ball": ({"normalise": "ball", "temperature": 0.11}, lambda z, y, w: softmax(z, y, w, 0.11, geometry="ball")),
}


@pytest.mark.parametrize("batch", CLASS_BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_class_equation("proxy_nca_pp", *FORMS[form], batch)
