"""VICReg: its equation as loops [math A24p], the values of its paper, and what it needs to train."""

from functools import partial

import pytest

from tests.losses.cases import BATCHES, assert_equation
from tests.losses.loops import hinge, mean, pairs_of, placed, taking_part

DEFAULTS = {"invariance": 25.0, "variance": 25.0, "covariance": 1.0, "epsilon": 0.0001, "normalise": "none"}


def covariance(vectors, i, j):
    means = [sum(v[k] for v in vectors) / len(vectors) for k in (i, j)]
    return sum((v[i] - means[0]) * (v[j] - means[1]) for v in vectors) / (len(vectors) - 1)


def vicreg(z, c, pos, neg, lam=25.0, mu=25.0, nu=1.0, eps=1e-4, geometry="none"):
    rows, columns = ([placed(v, geometry) for v in vectors] for vectors in (z, c))
    size = z.shape[1]
    total = lam * mean([((rows[i] - columns[p]) ** 2).sum() / size for i, p in pairs_of(pos)], z)
    for view in (rows, [columns[j] for j in taking_part(pos, neg, len(c))]):
        if len(view) > 1:
            for i in range(size):
                total = total + 0.5 * mu * hinge(1 - (covariance(view, i, i) + eps).sqrt()) / size
                total = total + nu * sum(covariance(view, i, j) ** 2 for j in range(size) if j != i) / size
    return total


FORMS = {
    "default": ({}, vicreg),
    "3 9 2 sphere": (
        {"invariance": 3.0, "variance": 9.0, "covariance": 2.0, "epsilon": 0.1, "normalise": "sphere"},
        partial(vicreg, lam=3.0, mu=9.0, nu=2.0, eps=0.1, geometry="sphere"),
    ),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("vicreg", *FORMS[form], batch)
