"""TupletMargin: its equation as loops [math A24a], the values of its paper, and what it needs to train."""

import math
from functools import partial

import pytest

from tests.losses.cases import BATCHES, assert_equation
from tests.losses.loops import dots, log_one_plus, mean, pairs_of

DEFAULTS = {"margin": 0.1, "scale": 64.0}


def tuplet_margin(z, c, pos, neg, slack=0.1, scale=64.0, geometry="sphere"):
    S = dots(z, c, geometry)
    terms = []
    for i, p in pairs_of(pos):
        within = S[i][p] >= math.cos(slack)
        near = 1.0 + 0 * S[i][p] if within else (S[i][p].acos() - slack).cos()
        terms.append(log_one_plus([scale * (S[i][n] - near) for n in neg[i]]) + 0 * z.sum())
    return mean(terms, z)


FORMS = {
    "default": ({}, tuplet_margin),
    "0.6 10": ({"margin": 0.6, "scale": 10.0}, partial(tuplet_margin, slack=0.6, scale=10.0)),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("tuplet_margin", *FORMS[form], batch)
