"""RecallAtK: its equation as loops [math A24l], the values of its paper, and what it needs to train."""

from functools import partial

import pytest
import torch

from tests.losses.cases import BATCHES, assert_equation
from tests.losses.loops import dots, mean, soft_count

DEFAULTS = {"k": (1, 2, 4, 8, 16), "temperature": 0.01, "k_temperature": 1.0}


def recall_at_k(z, c, pos, neg, ks=(1, 2, 4, 8, 16), temperature=0.01, outer=1.0, geometry="sphere"):
    S = dots(z, c, geometry)
    terms = []
    for i in range(len(z)):
        ranks = []
        for p in pos[i]:
            others = [S[i][j] for j in pos[i] + neg[i] if j != p]
            ranks.append(1 + soft_count(S[i][p], others, temperature, z))
        for k in ks if ranks else ():
            terms.append(1 - sum(torch.sigmoid((k - r) / outer) for r in ranks) / min(k, len(ranks)))
    return mean(terms, z)


FORMS = {
    "default": ({}, recall_at_k),
    "2": (
        {"k": 2, "temperature": 0.1, "k_temperature": 0.5},
        partial(recall_at_k, ks=(2,), temperature=0.1, outer=0.5),
    ),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("recall_at_k", *FORMS[form], batch)
