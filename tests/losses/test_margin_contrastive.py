"""MarginContrastive: its equation as loops [math A1c], the values of its paper, and what it needs to train."""

from functools import partial

import pytest

from tests.losses.cases import BATCHES, assert_equation
from tests.losses.loops import apart, hinge, mean_active, pairs_of

DEFAULTS = {"positive_margin": 0.0, "negative_margin": 0.3841, "normalise": "ball"}
PRESETS = {
    "cub": {"positive_margin": 0.0, "negative_margin": 0.3841},
    "cars": {"positive_margin": 0.2652, "negative_margin": 0.5409},
    "inshop": {"positive_margin": 0.2858, "negative_margin": 0.513},
    "sop": {"positive_margin": 0.2858, "negative_margin": 0.513},
}


def margin_contrastive(z, c, pos, neg, low=0.0, high=0.3841, geometry="ball"):
    d = apart(z, c, geometry)
    pull = mean_active([hinge(d[i][j] - low) for i, j in pairs_of(pos)], z)
    return pull + mean_active([hinge(high - d[i][j]) for i, j in pairs_of(neg)], z)


FORMS = {
    "default": ({}, margin_contrastive),
    "cars": ({"preset": "cars"}, partial(margin_contrastive, low=0.2652, high=0.5409)),
    "sphere": (
        {"normalise": "sphere", "negative_margin": 1.2},
        partial(margin_contrastive, high=1.2, geometry="sphere"),
    ),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("margin_contrastive", *FORMS[form], batch)
