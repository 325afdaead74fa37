"""NormalisedSoftmax: its equation as loops [math A13d], the values of its paper, and what it needs to train."""

import pytest

from tests.losses.cases import CLASS_BATCHES, assert_class_equation
from tests.losses.test_proxy_nca_pp import softmax

DEFAULTS = {"temperature": 0.05, "learning_rate": 1e-05}
PRESETS = {
    "sop": {"learning_rate": 0.002},
}
TRAINING = ["optimiser.loss_lr=1e-2"]


FORMS = {
    "default": ({}, lambda z, y, w: softmax(z, y, w, 0.05)),
}


@pytest.mark.parametrize("batch", CLASS_BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_class_equation("normalised_softmax", *FORMS[form], batch)
