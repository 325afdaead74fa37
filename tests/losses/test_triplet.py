"""Triplet: its equation as loops [math A2], the values of its paper, and what it needs to train."""

from functools import partial

import pytest

from tests.losses.cases import BATCHES, assert_equation, assert_listed
from tests.losses.loops import apart, dots, hinge, listed, log_one_plus, mean, mean_active

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


def triplet_terms(z, c, triplets, gap, geometry, squared, cosine, smooth=False):
    part = (lambda x: log_one_plus([x])) if smooth else hinge
    if cosine:
        S = dots(z, c, geometry)
        return [part(S[a][n] - S[a][p] + gap) for a, p, n in triplets]
    d, power = apart(z, c, geometry), 2 if squared else 1
    return [part(d[a][p] ** power - d[a][n] ** power + gap) for a, p, n in triplets]


def smooth_listed(z, c, triplets, gap=0.2):
    return mean(triplet_terms(z, c, triplets, gap, "sphere", squared=False, cosine=False, smooth=True), z)


def smooth(z, c, pos, neg):
    """Over all triplets: the mean of all of them, for none is 0."""
    return smooth_listed(z, c, listed(pos, neg), gap=0.0)


def active_listed(z, c, triplets):
    return mean_active(triplet_terms(z, c, triplets, 0.2, "sphere", squared=False, cosine=False), z)


FORMS = {
    "default": ({}, triplet),
    "squared": ({"preset": "roth"}, partial(triplet, squared=True)),
    "cosine": ({"similarity": "cosine", "margin": 0.1}, partial(triplet, gap=0.1, cosine=True)),
    "ball": ({"preset": "cub"}, partial(triplet, gap=0.0961, geometry="ball")),
    "smooth": ({"smooth": True, "margin": 0.0}, smooth),
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
    "active": ({"reduction": "active"}, active_listed),
    "smooth": ({"smooth": True}, smooth_listed),
    "smooth sum": ({"smooth": True, "reduction": "sum"}, lambda z, c, t: smooth_listed(z, c, t) * len(t)),
}


@pytest.mark.parametrize("form", LISTED)
def test_list_of_triplets(form):
    assert_listed("triplet", *LISTED[form])
