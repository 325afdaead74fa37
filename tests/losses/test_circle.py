"""Circle: its equation as loops [math A22], the values of its paper, and what it needs to train."""

from functools import partial

import pytest

from tests.losses.cases import BATCHES, assert_equation
from tests.losses.loops import dots, log_one_plus, lse, mean

DEFAULTS = {"margin": 0.25, "scale": 80.0}


def circle(z, c, pos, neg, gap=0.25, scale=80.0, geometry="sphere"):
    S = dots(z, c, geometry)
    terms = []
    for i in range(len(z)):
        if pos[i] and neg[i]:
            push = [scale * max(0.0, S[i][n].item() + gap) * (S[i][n] - gap) for n in neg[i]]
            pull = [-scale * max(0.0, 1 + gap - S[i][p].item()) * (S[i][p] - 1 + gap) for p in pos[i]]
            terms.append(log_one_plus([lse(push) + lse(pull)]))
    return mean(terms, z)


FORMS = {
    "default": ({}, circle),
    "0.4 30": ({"margin": 0.4, "scale": 30.0}, partial(circle, gap=0.4, scale=30.0)),
    "raw": ({"scale": 2.0, "normalise": "none"}, partial(circle, scale=2.0, geometry="none")),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("circle", *FORMS[form], batch)
