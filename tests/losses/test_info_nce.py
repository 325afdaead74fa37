"""InfoNCE: its equation as loops [math A22], the values of its paper, and what it needs to train."""

from functools import partial

import pytest

from tests.losses.cases import BATCHES, assert_equation
from tests.losses.loops import dots, mean

DEFAULTS = {"temperature": 0.1}


def info_nce(z, c, pos, neg, temperature=0.1, geometry="sphere"):
    S = dots(z, c, geometry)
    terms = []
    for i in range(len(z)):
        for p in pos[i]:
            own = (S[i][p] / temperature).exp()
            terms.append(-(own / (own + sum((S[i][n] / temperature).exp() for n in neg[i]))).log())
    return mean(terms, z)


FORMS = {
    "default": ({}, info_nce),
    "0.5": ({"temperature": 0.5}, partial(info_nce, temperature=0.5)),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("info_nce", *FORMS[form], batch)
