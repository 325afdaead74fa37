"""ThresholdConsistentMargin: its equation as loops [math A24c], the values of its paper, and what it needs to train."""

from functools import partial

import pytest

from tests.losses.cases import BATCHES, assert_equation
from tests.losses.loops import dots, mean, pairs_of

DEFAULTS = {"positive_margin": 0.9, "negative_margin": 0.5, "positive_weight": 1.0}


def threshold_consistent_margin(z, c, pos, neg, above=0.9, below=0.5, pull=1.0, push=1.0, geometry="sphere"):
    S = dots(z, c, geometry)
    low = mean([above - S[i][p] for i, p in pairs_of(pos) if S[i][p] <= above], z)
    return pull * low + push * mean([S[i][n] - below for i, n in pairs_of(neg) if S[i][n] >= below], z)


FORMS = {
    "default": ({}, threshold_consistent_margin),
    "0.4 -0.1": (
        {"positive_margin": 0.4, "negative_margin": -0.1, "positive_weight": 2.0},
        partial(threshold_consistent_margin, above=0.4, below=-0.1, pull=2.0),
    ),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("threshold_consistent_margin", *FORMS[form], batch)
