"""Angular: its equation as loops [math A5], the values of its paper, and what it needs to train."""

import math
from functools import partial

import pytest
import torch

from lookalike import losses
from lookalike.targets import Pairs
from tests.losses.cases import BATCHES, UNEVEN, assert_equation, assert_same, random_rows
from tests.losses.loops import log_one_plus, mean, placed, sides
from tests.losses.test_n_pair import n_pair, n_pair_printed

DEFAULTS = {"angular_weight": 2.0, "positives": "mean", "normalise": "sphere"}


def angular(z, c, pos, neg, degrees=45.0, lam=2.0, nu=0.005, geometry="sphere", printed=False):
    t = math.tan(math.radians(degrees)) ** 2
    rows, columns = ([placed(v, geometry) for v in vectors] for vectors in (z, c))
    terms = []
    for a in range(len(z)):
        of_positives = []
        for p in pos[a]:
            agreement = 2 * (1 + t) * (rows[a] * columns[p]).sum()
            values = [4 * t * ((rows[a] + columns[p]) * columns[n]).sum() - agreement for n in neg[a]]
            of_positives.append(log_one_plus(values))
        if of_positives:
            terms.append(sum(of_positives) if printed else mean(of_positives, z))
    if printed:  # divided by b, which counts samples without a positive, too
        return n_pair_printed(z, c, pos, neg, nu) + lam * sum(terms, 0 * z.sum()) / len(z)
    return n_pair(z, c, pos, neg, nu) + lam * mean(terms, z)


FORMS = {
    "default": ({}, angular),
    "sum": ({"positives": "sum"}, partial(angular, printed=True)),
    "36": ({"alpha": 36.0, "angular_weight": 1.0, "norm_weight": 0.0}, partial(angular, degrees=36.0, lam=1.0, nu=0.0)),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("angular", *FORMS[form], batch)


@pytest.mark.parametrize("name", ["n_pair", "angular"])
def test_one_positive_is_the_loss_of_the_pairs_it_draws(name):
    loss = losses.build(name, positives="one")
    pairs = loss.targets(torch.tensor(UNEVEN), torch.Generator().manual_seed(3))
    everyone = Pairs.within(torch.tensor(UNEVEN))
    assert torch.equal(pairs.positive.sum(1), everyone.positive.any(1).long())
    assert (everyone.positive | ~pairs.positive).all()
    assert torch.equal(pairs.negative, everyone.negative)
    positives = [row.nonzero().flatten().tolist() for row in pairs.positive]
    z = random_rows(len(UNEVEN))
    oracle = n_pair if name == "n_pair" else angular
    assert_same(loss(z, pairs), oracle(z, z, positives, sides(UNEVEN)[1]), [z])
