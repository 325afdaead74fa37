"""IntraPairVariance: its equation as loops [math A24b], the values of its paper, and what it needs to train."""

from functools import partial

import pytest

from tests.losses.cases import BATCHES, assert_equation
from tests.losses.loops import dots, hinge, mean, pairs_of

DEFAULTS = {"positive_slack": 0.01, "negative_slack": 0.01}
TRAINS_ALONE = False  # 0 where all vectors are equal, as those of an untrained network nearly are


def intra_pair_variance(z, c, pos, neg, low=0.01, high=0.01, geometry="sphere"):
    S = dots(z, c, geometry)
    near, far = ([S[i][j] for i, j in pairs_of(side)] for side in (pos, neg))
    usual, rivals = mean(near, z), mean(far, z)
    pull = mean([hinge((1 - low) * usual - x) ** 2 for x in near], z)
    return pull + mean([hinge(x - (1 + high) * rivals) ** 2 for x in far], z)


FORMS = {
    "default": ({}, intra_pair_variance),
    "0.2 0.4": (
        {"positive_slack": 0.2, "negative_slack": 0.4, "normalise": "none"},
        partial(intra_pair_variance, low=0.2, high=0.4, geometry="none"),
    ),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("intra_pair_variance", *FORMS[form], batch)
