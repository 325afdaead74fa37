"""Contrastive: its equation as loops [math A1a], the values of its paper, and what it needs to train."""

from functools import partial

import pytest

from tests.losses.cases import BATCHES, assert_equation, assert_listed
from tests.losses.loops import apart, dots, hinge, mean, pairs_of

DEFAULTS = {"positive_margin": 0.0, "negative_margin": 1.0, "normalise": "sphere"}
TRAINING = ["miner.name=distance_weighted"]
TAKES_TRIPLETS = True


def contrastive(z, c, pos, neg, low=0.0, high=1.0, geometry="sphere"):
    return contrastive_listed(z, c, pairs_of(pos), pairs_of(neg), low, high, geometry)


def contrastive_listed(z, c, near, far, low=0.0, high=1.0, geometry="sphere"):
    d = apart(z, c, geometry)
    return mean([hinge(d[i][j] - low) for i, j in near], z) + mean([hinge(high - d[i][j]) for i, j in far], z)


def contrastive_gpw(z, c, pos, neg, lam=0.5, geometry="sphere"):
    S = dots(z, c, geometry)
    total = 0 * z.sum()
    for i in range(len(z)):
        total = total + sum(hinge(S[i][j] - lam) for j in neg[i]) - sum(S[i][j] for j in pos[i])
    return total / len(z)


FORMS = {
    "default": ({}, contrastive),
    "margins": ({"positive_margin": 0.3, "negative_margin": 1.3}, partial(contrastive, low=0.3, high=1.3)),
    "ball": ({"normalise": "ball"}, partial(contrastive, geometry="ball")),
    "raw": ({"normalise": "none"}, partial(contrastive, geometry="none")),
    "cosine": ({"similarity": "cosine"}, contrastive_gpw),
    "cosine 0.2": (
        {"similarity": "cosine", "threshold": 0.2, "normalise": "ball"},
        partial(contrastive_gpw, lam=0.2, geometry="ball"),
    ),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("contrastive", *FORMS[form], batch)


LISTED = {
    "default": ({}, lambda z, c, t: contrastive_listed(z, c, [(a, p) for a, p, _ in t], [(a, n) for a, _, n in t])),
}


@pytest.mark.parametrize("form", LISTED)
def test_list_of_triplets(form):
    assert_listed("contrastive", *LISTED[form])
