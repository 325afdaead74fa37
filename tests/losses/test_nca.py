"""NCA: its equation as loops [math A12], the values of its paper, and what it needs to train."""

from functools import partial

import pytest

from tests.losses.cases import BATCHES, assert_equation
from tests.losses.loops import dots

DEFAULTS = {"temperature": 1.0}


def nca(z, c, pos, neg, temperature=1.0, geometry="sphere"):
    S = dots(z, c, geometry)
    total = 0 * z.sum()
    for i in range(len(z)):
        if pos[i]:
            near = sum((S[i][j] / temperature).exp() for j in pos[i])
            total = total - (near / sum((S[i][k] / temperature).exp() for k in pos[i] + neg[i])).log()
    return total / len(z)


FORMS = {
    "default": ({}, nca),
    "0.2": ({"temperature": 0.2}, partial(nca, temperature=0.2)),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("nca", *FORMS[form], batch)
