"""SupCon: its equation as loops [math A22], the values of its paper, and what it needs to train."""

import pytest

from tests.losses.cases import BATCHES, assert_equation
from tests.losses.loops import dots, lse, mean

DEFAULTS = {"temperature": 0.1}


def supcon(z, c, pos, neg, temperature=0.1, geometry="sphere"):
    S = dots(z, c, geometry)
    terms = []
    for i in range(len(z)):
        if pos[i]:
            everyone = lse([S[i][k] / temperature for k in pos[i] + neg[i]])
            terms.append(-mean([S[i][p] / temperature - everyone for p in pos[i]], z))
    return mean(terms, z)


FORMS = {
    "default": ({}, supcon),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("supcon", *FORMS[form], batch)
