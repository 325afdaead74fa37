"""SmoothAP: its equation as loops [math A22], the values of its paper, and what it needs to train."""

from functools import partial

import pytest
import torch

from tests.losses.cases import BATCHES, assert_equation
from tests.losses.loops import dots, mean

DEFAULTS = {"temperature": 0.01}


def smooth_ap(z, c, pos, neg, temperature=0.01, geometry="sphere"):
    S = dots(z, c, geometry)
    values = []
    for i in range(len(z)):
        terms = []
        for p in pos[i]:
            among = [torch.sigmoid((S[i][q] - S[i][p]) / temperature) for q in pos[i] if q != p]
            against = [torch.sigmoid((S[i][n] - S[i][p]) / temperature) for n in neg[i]]
            terms.append((1 + sum(among)) / (1 + sum(among) + sum(against)))
        if terms:
            values.append(1 - mean([x + 0 * z.sum() for x in terms], z))
    return mean(values, z)


FORMS = {
    "default": ({}, smooth_ap),
    "0.1": ({"temperature": 0.1}, partial(smooth_ap, temperature=0.1)),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("smooth_ap", *FORMS[form], batch)
