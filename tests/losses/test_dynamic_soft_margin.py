"""DynamicSoftMargin: its equation as loops [math A24m], the values of its paper, and what it needs to train."""

import math
from functools import partial

import pytest

from tests.losses.cases import BATCHES, assert_equation
from tests.losses.loops import apart, mean, pairs_of

DEFAULTS = {"nodes": 512}


def dynamic_soft_margin(z, c, pos, neg, nodes=512, geometry="sphere"):
    d = apart(z, c, geometry)
    values = []
    for i, p in pairs_of(pos):
        rivals = [d[i][n] for n in neg[i]] + [d[k][p] for k in range(len(z)) if p in neg[k]]
        if rivals:
            values.append(d[i][p] - min(rivals, key=lambda x: x.item()))
    width, heights = 4 / (nodes - 1), [0.0] * (nodes + 1)
    for x in values:
        place = (x.item() + 2) / width
        lower = math.floor(place)
        heights[lower] += 1 - (place - lower)
        heights[lower + 1] += place - lower
    easier = [sum(heights[: math.floor((x.item() + 2) / width) + 1]) / len(values) for x in values]
    return mean([w * x for w, x in zip(easier, values, strict=True)], z)


FORMS = {
    "default": ({}, dynamic_soft_margin),
    "9": ({"nodes": 9, "normalise": "ball"}, partial(dynamic_soft_margin, nodes=9, geometry="ball")),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("dynamic_soft_margin", *FORMS[form], batch, kinked=True)
