"""LiftedStructure: its equation as loops [math A3a], the values of its paper, and what it needs to train."""

from functools import partial

import pytest

from tests.losses.cases import BATCHES, assert_equation
from tests.losses.loops import apart, hinge, lse, pairs_of

DEFAULTS = {"margin": 1.0}


def lifted_structure(z, c, pos, neg, gap=1.0, geometry="sphere"):
    """Unordered pairs within a batch; elsewhere ordered ones: the negatives of column j are the rows it repels."""
    d = apart(z, c, geometry)
    ordered = c is not z or any(i not in pos[j] for i, j in pairs_of(pos))
    pairs = [(i, j) for i, j in pairs_of(pos) if ordered or i < j]
    total = 0 * z.sum()
    for i, j in pairs:
        mine = [gap - d[i][k] for k in neg[i]]
        theirs = [gap - d[r][j] for r in range(len(z)) if j in neg[r]]
        if mine or theirs:
            total = total + hinge(lse(mine + theirs) + d[i][j]) ** 2
    return total / (2 * len(pairs)) if pairs else total


FORMS = {
    "default": ({}, lifted_structure),
    "ball": ({"margin": 0.4, "normalise": "ball"}, partial(lifted_structure, gap=0.4, geometry="ball")),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("lifted_structure", *FORMS[form], batch)
