"""MultiSimilarity: its equation as loops [math A10], the values of its paper, and what it needs to train."""

from functools import partial

import pytest

from tests.losses.cases import BATCHES, assert_equation
from tests.losses.loops import dots, log_one_plus

DEFAULTS = {"alpha": 2.0, "beta": 40.0, "threshold": 0.5, "mining_margin": 0.1}
PRESETS = {
    "roth": {"alpha": 2.0, "beta": 40.0, "threshold": 0.5, "mining_margin": 0.1},
    "cub": {"alpha": 2.0, "beta": 40.0, "threshold": 0.5, "mining_margin": None},
    "cars": {"alpha": 14.35, "beta": 75.83, "threshold": 0.66, "mining_margin": None},
    "inshop": {"alpha": 8.49, "beta": 57.38, "threshold": 0.41, "mining_margin": None},
    "sop": {"alpha": 2.0, "beta": 40.0, "threshold": 0.5, "mining_margin": None},
}


def mined(S, pos, neg, eps):
    """The mined sets; an anchor that lacks either side before mining has neither afterwards."""
    positives, negatives = [], []
    for i in range(len(S)):
        if not pos[i] or not neg[i]:
            positives.append([])
            negatives.append([])
            continue
        lowest, highest = min(S[i][j].item() for j in pos[i]), max(S[i][j].item() for j in neg[i])
        positives.append([j for j in pos[i] if S[i][j] < highest + eps])
        negatives.append([j for j in neg[i] if S[i][j] > lowest - eps])
    return positives, negatives


def multi_similarity(z, c, pos, neg, al=2.0, be=40.0, lam=0.5, eps=0.1, weighting=True, geometry="sphere"):
    S = dots(z, c, geometry)
    if eps is not None:
        pos, neg = mined(S, pos, neg, eps)
    total = 0 * z.sum()
    for i in range(len(z)):
        if weighting:
            total = total + log_one_plus([-al * (S[i][j] - lam) for j in pos[i]]) / al
            total = total + log_one_plus([be * (S[i][j] - lam) for j in neg[i]]) / be
        else:
            total = total + sum(S[i][j] for j in neg[i]) - sum(S[i][j] for j in pos[i])
    return total / len(z)


FORMS = {
    "default": ({}, multi_similarity),
    "printed": ({"beta": 50.0, "threshold": 1.0}, partial(multi_similarity, be=50.0, lam=1.0)),
    "weighting": ({"mining_margin": None}, partial(multi_similarity, eps=None)),
    "mining": ({"weighting": False}, partial(multi_similarity, weighting=False)),
    "cars": ({"preset": "cars"}, partial(multi_similarity, al=14.35, be=75.83, lam=0.66, eps=None, geometry="ball")),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("multi_similarity", *FORMS[form], batch)
