"""SigLIP: its equation as loops [math A24d], the values of its paper, and what it needs to train."""

import math
from functools import partial

import pytest
import torch

from lookalike import losses
from tests.losses.cases import BATCHES, UNEVEN, assert_equation, assert_same, random_rows
from tests.losses.loops import dots, log_one_plus, pairs_of, sides

DEFAULTS = {"bias": -10.0, "rate_factor": 1.0}


def siglip(z, c, pos, neg, scale=10.0, bias=-10.0, geometry="sphere"):
    S = dots(z, c, geometry)
    total = 0 * z.sum()
    for sign, side in ((1, pos), (-1, neg)):
        for i, j in pairs_of(side):
            total = total + log_one_plus([-sign * (scale * S[i][j] + bias)])
    return total / len(z)


FORMS = {
    # its scale is the exponential of a float32
    "default": ({}, partial(siglip, scale=math.exp(losses.SigLIP().log_scale.item()))),
    "1 -2": ({"scale": 1.0, "bias": -2.0}, partial(siglip, scale=1.0, bias=-2.0)),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("siglip", *FORMS[form], batch)


def test_the_slope_and_threshold_of_siglip_learn():
    loss = losses.SigLIP(scale=3.0, bias=-1.0).double()
    z = random_rows(len(UNEVEN))
    expected = siglip(z, z, *sides(UNEVEN), loss.log_scale.exp(), loss.bias)
    assert_same(loss(z, torch.tensor(UNEVEN)), expected, [z, loss.log_scale, loss.bias])
