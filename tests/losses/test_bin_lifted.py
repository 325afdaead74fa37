"""BinLifted: its equation as loops [math A11], the values of its paper, and what it needs to train."""

import pytest

from tests.losses.cases import BATCHES, assert_equation
from tests.losses.loops import dots, log_one_plus, lse

DEFAULTS = {"alpha": 2.0, "beta": 50.0, "threshold": 0.5}


def bin_lifted(z, c, pos, neg, al=2.0, be=50.0, lam=0.5, geometry="sphere"):
    S = dots(z, c, geometry)
    total = 0 * z.sum()
    for i in range(len(z)):
        if neg[i]:
            alone = sum(log_one_plus([be * (S[i][j] - lam)]) for j in neg[i])
            total = total + 0.5 * (alone + lse([be * S[i][j] for j in neg[i]])) / be
        if pos[i]:
            alone = sum(log_one_plus([al * (lam - S[i][j])]) for j in pos[i])
            total = total + 0.5 * (alone + lse([-al * S[i][j] for j in pos[i]])) / al
    return total / len(z)


FORMS = {
    "default": ({}, bin_lifted),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("bin_lifted", *FORMS[form], batch)
