"""LiftedStar: its equation as loops [math A3d], the values of its paper, and what it needs to train."""

from functools import partial

import pytest

from tests.losses.cases import BATCHES, assert_equation
from tests.losses.loops import dots, lse

DEFAULTS = {"alpha": 2.0, "beta": 50.0}


def lifted_star(z, c, pos, neg, al=2.0, be=50.0, geometry="sphere"):
    S = dots(z, c, geometry)
    total = 0 * z.sum()
    for i in range(len(z)):
        if pos[i] and neg[i]:
            total = total + lse([-al * S[i][p] for p in pos[i]]) / al + lse([be * S[i][n] for n in neg[i]]) / be
    return total / len(z)


FORMS = {
    "default": ({}, lifted_star),
    "5 10": ({"alpha": 5.0, "beta": 10.0}, partial(lifted_star, al=5.0, be=10.0)),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("lifted_star", *FORMS[form], batch)
