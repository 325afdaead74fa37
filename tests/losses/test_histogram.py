"""Histogram: its equation as loops [math A7], the values of its paper, and what it needs to train."""

from functools import partial

import pytest

from tests.losses.cases import BATCHES, assert_equation
from tests.losses.loops import dots, hinge, mean, pairs_of

DEFAULTS = {"nodes": 65}
PRESETS = {
    "cub": {"nodes": 65},
    "cars": {"nodes": 65},
    "sop": {"nodes": 11},
}


def histogram(z, c, pos, neg, nodes=65, geometry="sphere"):
    S, width = dots(z, c, geometry), 2 / (nodes - 1)

    def heights(pairs):
        values = []
        for r in range(nodes):
            node = -1 + r * width
            values.append(mean([hinge(1 - (S[i][j] - node).abs() / width) for i, j in pairs], z))
        return values

    if not pairs_of(pos) or not pairs_of(neg):
        return 0 * z.sum()
    near, far = heights(pairs_of(pos)), heights(pairs_of(neg))
    return sum(far[r] * near[q] for r in range(nodes) for q in range(r + 1))


FORMS = {
    "default": ({}, histogram),
    "11": ({"preset": "sop"}, partial(histogram, nodes=11)),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("histogram", *FORMS[form], batch, kinked=True)
