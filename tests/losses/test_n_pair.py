"""NPair: its equation as loops [math A4], the values of its paper, and what it needs to train."""

from functools import partial

import pytest
import torch

from lookalike import losses
from tests.losses.cases import BATCHES, UNEVEN, assert_equation, random_rows
from tests.losses.loops import dots, hinge, log_one_plus, lse, mean, mean_length, sides

DEFAULTS = {"norm_weight": 0.005, "positives": "mean", "normalise": "none"}
PRESETS = {
    "roth": {"positives": "one"},
}


def n_pair(z, c, pos, neg, nu=0.005, squared=False, geometry="none"):
    S = dots(z, c, geometry)
    terms = []
    for i in range(len(z)):
        if pos[i]:
            terms.append(mean([log_one_plus([S[i][n] - S[i][p] for n in neg[i]]) for p in pos[i]], z))
    return mean(terms, z) + nu * mean_length(z, squared)


def n_pair_printed(z, c, pos, neg, nu=0.005):
    """Eq. 4: a sum over all positive pairs, divided by b, which counts samples without a positive, too."""
    S = dots(z, c, "none")
    total = 0 * z.sum()
    for i in range(len(z)):
        for p in pos[i]:
            total = total + log_one_plus([S[i][n] - S[i][p] for n in neg[i]])
    return total / len(z) + nu * mean_length(z)


def n_pair_as_lifted(z, c, pos, neg, lam=1.0, geometry="sphere"):
    """Multi-Similarity's reading: eq. 6 with a single positive, here averaged over which one it is."""
    S = dots(z, c, geometry)
    total = 0 * z.sum()
    for i in range(len(z)):
        if pos[i] and neg[i]:
            total = total + mean([hinge(lam - S[i][p] + lse([S[i][n] for n in neg[i]])) for p in pos[i]], z)
    return total


FORMS = {
    "default": ({}, n_pair),
    "sum": ({"positives": "sum"}, n_pair_printed),
    "squared norm": ({"norm_squared": True, "norm_weight": 0.02}, partial(n_pair, nu=0.02, squared=True)),
    "lifted": ({"reading": "lifted"}, n_pair_as_lifted),
    "lifted 0.3": ({"reading": "lifted", "margin": 0.3}, partial(n_pair_as_lifted, lam=0.3)),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("n_pair", *FORMS[form], batch)


def test_one_positive_same_generator_same_positives():
    loss = losses.NPair(positives="one")
    labels = torch.tensor(UNEVEN)
    first, second = (loss.targets(labels, torch.Generator().manual_seed(7)) for _ in range(2))
    assert torch.equal(first.positive, second.positive)


def test_plain_labels_draw_one_positive_too():
    """With positives="one" the value is one of those the possible positives give."""
    labels, z = [0, 0, 0, 1], random_rows(4)
    values = []
    for choice in ([1, 0, 0], [1, 0, 1], [1, 2, 0], [1, 2, 1], [2, 0, 0], [2, 0, 1], [2, 2, 0], [2, 2, 1]):
        positives = [[p] for p in choice] + [[]]
        values.append(n_pair(z, z, positives, sides(labels)[1]).item())
    torch.manual_seed(0)
    for _ in range(5):
        value = losses.NPair(positives="one")(z, torch.tensor(labels)).item()
        assert min(abs(value - x) for x in values) < 1e-9
