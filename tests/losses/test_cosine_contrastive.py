"""CosineContrastive: its equation as loops [math A1b], the values of its paper, and what it needs to train."""

from functools import partial

import pytest

from tests.losses.cases import BATCHES, assert_equation
from tests.losses.loops import dots, hinge

DEFAULTS = {"threshold": 0.5, "normalise": "ball"}
TRAINING = ["optimiser.lr=5e-3"]
# in the unit ball the short vectors of an untrained network cost next to nothing: the value rises before it falls
FEW_STEPS = ["loss.normalise=sphere"]


def cosine_contrastive(z, c, pos, neg, lam=0.5, geometry="ball"):
    S = dots(z, c, geometry)
    total = 0 * z.sum()
    for i in range(len(z)):
        total = total + sum(hinge(1 - S[i][j]) for j in pos[i]) + sum(hinge(S[i][j] - lam) for j in neg[i])
    return total / len(z)


FORMS = {
    "default": ({}, cosine_contrastive),
    "sphere": ({"threshold": 0.1, "normalise": "sphere"}, partial(cosine_contrastive, lam=0.1, geometry="sphere")),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("cosine_contrastive", *FORMS[form], batch)
