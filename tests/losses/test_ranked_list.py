"""RankedList: its equation as loops [math A24e], the values of its paper, and what it needs to train."""

import math
from functools import partial

import pytest

from tests.losses.cases import BATCHES, assert_equation
from tests.losses.loops import apart, mean

DEFAULTS = {"boundary": 1.2, "margin": 0.4, "balance": 0.5, "negative_temperature": 10.0}


def weighed(values, temperature, z):
    """The mean weighted by e^{T x}, the weights being numbers."""
    weights = [math.exp(temperature * x.item()) for x in values]
    return sum(w * x for w, x in zip(weights, values, strict=True)) / sum(weights) if values else 0 * z.sum()


def ranked_list(z, c, pos, neg, al=1.2, gap=0.4, lam=0.5, t_pos=0.0, t_neg=10.0, geometry="sphere"):
    d = apart(z, c, geometry)
    terms = []
    for i in range(len(z)):
        far = [d[i][p] - (al - gap) for p in pos[i] if d[i][p] > al - gap]
        near = [al - d[i][n] for n in neg[i] if d[i][n] < al]
        terms.append((1 - lam) * weighed(far, t_pos, z) + lam * weighed(near, t_neg, z))
    return mean(terms, z)


FORMS = {
    "default": ({}, ranked_list),
    "1 0.3": (
        {"boundary": 1.0, "margin": 0.3, "balance": 0.3, "positive_temperature": 4.0, "normalise": "ball"},
        partial(ranked_list, al=1.0, gap=0.3, lam=0.3, t_pos=4.0, geometry="ball"),
    ),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("ranked_list", *FORMS[form], batch)
