"""SNR: its equation as loops [math A15], the values of its paper, and what it needs to train."""

from functools import partial

import pytest
import torch

from lookalike import losses
from tests.losses.cases import BATCHES, UNEVEN, assert_equation, assert_listed, assert_same, random_rows, triplets
from tests.losses.loops import hinge, listed, mean, mean_active, placed, sides

DEFAULTS = {"margin": 0.2, "sum_weight": 0.005}
TRAINING = ["miner.name=distance_weighted"]
TAKES_TRIPLETS = True


def variance(vector):
    return ((vector - vector.sum() / len(vector)) ** 2).sum() / len(vector)


def snr(z, c, pos, neg, gap=0.2, lam=0.005, geometry="sphere"):
    return snr_listed(z, c, listed(pos, neg), gap, lam, geometry)


def snr_listed(z, c, triplets, gap=0.2, lam=0.005, geometry="sphere"):
    rows, columns = ([placed(v, geometry) for v in vectors] for vectors in (z, c))
    noise = [[variance(a - b) / max(variance(a), 1e-12 * torch.ones_like(a[0])) for b in columns] for a in rows]
    main = mean_active([hinge(noise[a][p] - noise[a][n] + gap) for a, p, n in triplets], z)
    return main + lam * mean([v.sum().abs() for v in rows], z)


FORMS = {
    "default": ({}, snr),
    "0.5": ({"margin": 0.5, "sum_weight": 0.1}, partial(snr, gap=0.5, lam=0.1)),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("snr", *FORMS[form], batch)


LISTED = {
    "default": ({}, snr_listed),
}


@pytest.mark.parametrize("form", LISTED)
def test_list_of_triplets(form):
    assert_listed("snr", *LISTED[form])


def test_all_triplets_equal_the_list_of_them_all():
    """Summed by sorting or one by one: SNR takes the mean of the active ones of either."""
    z = random_rows(len(UNEVEN))
    every = triplets(listed(*sides(UNEVEN)))
    assert_same(losses.SNR()(z, torch.tensor(UNEVEN)), losses.SNR()(z, every), [z])
