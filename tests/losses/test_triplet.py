"""Triplet: its equation as loops [math A2], the values of its paper, and what it needs to train."""

from functools import partial

import pytest

from tests.losses.cases import BATCHES, assert_equation, assert_listed
from tests.losses.loops import apart, dots, hinge, listed, mean, mean_active

DEFAULTS = {"margin": 0.2, "squared": False, "normalise": "sphere"}
PRESETS = {
    "roth": {"margin": 0.2, "squared": True, "normalise": "sphere"},
    "cub": {"margin": 0.0961, "squared": False, "normalise": "ball"},
    "cars": {"margin": 0.119, "normalise": "ball"},
    "inshop": {"margin": 0.0451, "normalise": "ball"},
    "sop": {"margin": 0.0451, "normalise": "ball"},
}
TRAINING = ["miner.name=distance_weighted"]
TAKES_TRIPLETS = True


def triplet(z, c, pos, neg, gap=0.2, geometry="sphere", squared=False, cosine=False):
    return mean_active(triplet_terms(z, c, listed(pos, neg), gap, geometry, squared, cosine), z)


def triplet_listed(z, c, triplets, gap=0.2, geometry="sphere", squared=False, cosine=False):
    return mean(triplet_terms(z, c, triplets, gap, geometry, squared, cosine), z)


def triplet_terms(z, c, triplets, gap, geometry, squared, cosine):
    if cosine:
        S = dots(z, c, geometry)
        return [hinge(S[a][n] - S[a][p] + gap) for a, p, n in triplets]
    d, power = apart(z, c, geometry), 2 if squared else 1
    return [hinge(d[a][p] ** power - d[a][n] ** power + gap) for a, p, n in triplets]


FORMS = {
    "default": ({}, triplet),
    "squared": ({"preset": "roth"}, partial(triplet, squared=True)),
    "cosine": ({"similarity": "cosine", "margin": 0.1}, partial(triplet, gap=0.1, cosine=True)),
    "ball": ({"preset": "cub"}, partial(triplet, gap=0.0961, geometry="ball")),
    "raw squared": (
        {"squared": True, "normalise": "none", "margin": 1.0},
        partial(triplet, gap=1.0, geometry="none", squared=True),
    ),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("triplet", *FORMS[form], batch)


LISTED = {
    "default": ({}, triplet_listed),
    "squared": ({"squared": True}, partial(triplet_listed, squared=True)),
    "cosine": ({"similarity": "cosine"}, partial(triplet_listed, cosine=True)),
    "sum": ({"reduction": "sum"}, lambda z, c, t: triplet_listed(z, c, t) * len(t)),
}


@pytest.mark.parametrize("form", LISTED)
def test_list_of_triplets(form):
    assert_listed("triplet", *LISTED[form])
