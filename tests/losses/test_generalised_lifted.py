"""GeneralisedLifted: its equation as loops [math A3b], the values of its paper, and what it needs to train."""

from functools import partial

import pytest

from tests.losses.cases import BATCHES, assert_equation
from tests.losses.loops import apart, dots, hinge, lse, mean, mean_length

DEFAULTS = {"margin": 1.0, "norm_weight": 0.005, "reduction": "mean", "normalise": "none"}


def generalised_lifted(z, c, pos, neg, gap=1.0, nu=0.005, squared=False, reduction="mean", geometry="none"):
    d = apart(z, c, geometry)
    full = [i for i in range(len(z)) if pos[i] and neg[i]]
    terms = [hinge(lse([d[i][p] for p in pos[i]]) + lse([gap - d[i][n] for n in neg[i]])) for i in full]
    main = mean(terms, z) if reduction == "mean" else sum(terms, 0 * z.sum())
    return main + nu * mean_length(z, squared)


def lifted_cosine(z, c, pos, neg, lam=1.0, geometry="sphere", reduction="sum"):
    S = dots(z, c, geometry)
    full = [i for i in range(len(z)) if pos[i] and neg[i]]
    terms = [hinge(lse([lam - S[i][p] for p in pos[i]]) + lse([S[i][n] for n in neg[i]])) for i in full]
    return sum(terms, 0 * z.sum()) if reduction == "sum" else mean(terms, z)


FORMS = {
    "default": ({}, generalised_lifted),
    "printed": (
        {"reduction": "sum", "norm_squared": True, "margin": 0.7, "norm_weight": 0.01},
        partial(generalised_lifted, gap=0.7, nu=0.01, squared=True, reduction="sum"),
    ),
    "sphere": ({"normalise": "sphere"}, partial(generalised_lifted, geometry="sphere")),
    "cosine": ({"similarity": "cosine"}, lifted_cosine),
    "cosine mean": (
        {"similarity": "cosine", "margin": 0.5, "reduction": "mean"},
        partial(lifted_cosine, lam=0.5, reduction="mean"),
    ),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("generalised_lifted", *FORMS[form], batch)
