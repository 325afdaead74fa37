"""BinomialDeviance: its equation as loops [math A9], the values of its paper, and what it needs to train."""

from functools import partial

import pytest

from tests.losses.cases import BATCHES, assert_equation
from tests.losses.loops import dots, log_one_plus, mean

DEFAULTS = {"alpha": 2.0, "beta": 50.0, "threshold": 0.5}


def binomial_deviance(z, c, pos, neg, al=2.0, be=50.0, lam=0.5, reduction="mean", geometry="sphere"):
    S = dots(z, c, geometry)
    total = 0 * z.sum()
    for i in range(len(z)):
        total = total + mean([log_one_plus([al * (lam - S[i][j])]) for j in pos[i]], z)
        total = total + mean([log_one_plus([be * (S[i][j] - lam)]) for j in neg[i]], z)
    return total if reduction == "sum" else total / len(z)


FORMS = {
    "default": ({}, binomial_deviance),
    "sum": (
        {"reduction": "sum", "alpha": 3.0, "beta": 20.0, "threshold": 0.3},
        partial(binomial_deviance, al=3.0, be=20.0, lam=0.3, reduction="sum"),
    ),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("binomial_deviance", *FORMS[form], batch)
