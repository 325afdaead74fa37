"""FastAP: its equation as loops [math A16], the values of its paper, and what it needs to train."""

from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookalike.losses import FastAP
from lookalike.losses.soft_histogram import soft_histogram
from lookalike.targets import Pairs
from tests.losses.cases import BATCHES, assert_equation
from tests.losses.loops import dots, hinge, mean

DEFAULTS = {"bins": 10}
PRESETS = {
    "cub": {"bins": 17},
    "cars": {"bins": 27},
    "sop": {"bins": 16},
}


def fastap_of(near, far, bins):
    """FastAP of one anchor from its squared distances."""
    width = 4 / bins
    cumulated = cumulated_near = total = 0.0
    for centre in range(bins + 1):
        h_near = sum(hinge(1 - (x - centre * width).abs() / width) for x in near)
        h_far = sum(hinge(1 - (x - centre * width).abs() / width) for x in far)
        cumulated_near = cumulated_near + h_near
        cumulated = cumulated + h_near + h_far
        if cumulated > 0:
            total = total + h_near * cumulated_near / cumulated
    return total / len(near)


def fastap(z, c, pos, neg, bins=10):
    S = dots(z, c, "sphere")
    values = []
    for i in range(len(z)):
        if pos[i]:
            near, far = ([2 - 2 * S[i][j] for j in side] for side in (pos[i], neg[i]))
            values.append(1 - fastap_of(near, far, bins))
    return mean(values, z)


FORMS = {
    "default": ({}, fastap),
    "17": ({"preset": "cub"}, partial(fastap, bins=17)),
}


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("form", FORMS)
def test_equation(form, batch):
    assert_equation("fastap", *FORMS[form], batch, kinked=True)


def average_precision(squared, positive):
    """Exact AP of one ranking by distance."""
    order = sorted(range(len(squared)), key=lambda j: squared[j])
    hits, total = 0, 0.0
    for rank, j in enumerate(order, 1):
        if positive[j]:
            hits += 1
            total += hits / rank
    return total / hits


def of_query(squared, positive, bins):
    """FastAP of one query from squared distances."""
    mask = torch.tensor([positive])
    S = 1 - torch.tensor([squared], dtype=torch.float64) / 2
    return 1 - FastAP(bins=bins).of_similarities(S, Pairs(mask, ~mask)).item()


def histograms(z, mask, centres, width):
    """h[i][l] of every anchor and centre."""
    return torch.stack([((1 - (z - c).abs() / width).clamp(min=0) * mask).sum(1) for c in centres], 1)


@pytest.mark.parametrize("bins", [5, 10, 17])
def test_equation_17(bins):
    """d mean FastAP / dΨ = −(2/M) Ψ Σ_l (F+B+ + B+F+ + F−B− + B−F−), unit columns treated as free."""
    labels = torch.tensor([0, 0, 1, 1, 1, 2, 2])
    size, width = len(labels), 4 / bins
    psi = torch.randn(3, size, generator=torch.Generator().manual_seed(bins), dtype=torch.float64)
    psi = (psi / psi.norm(dim=0)).requires_grad_()
    pairs = Pairs.within(labels)
    value = 1 - FastAP(bins=bins).of_similarities(psi.T @ psi, pairs)

    z = (2 - 2 * psi.T @ psi).detach()
    centres = [width * index for index in range(bins + 1)]
    near, far = histograms(z, pairs.positive, centres, width), histograms(z, pairs.negative, centres, width)
    h_plus, big_plus, big_minus = near, near.cumsum(1), far.cumsum(1)
    big, count = big_plus + big_minus, pairs.positive.sum(1)
    ratio = torch.where(big > 0, 1 / big, torch.zeros_like(big))
    total = torch.zeros(size, size, dtype=torch.float64)
    for index, centre in enumerate(centres):
        later = (h_plus * big_minus * ratio**2)[:, index + 1 :].sum(1)
        f_plus = ((big_plus * big + h_plus * big_minus)[:, index] * ratio[:, index] ** 2 + later) / count
        f_minus = -(h_plus * big_plus * ratio**2)[:, index:].sum(1) / count
        slope = torch.where((z > centre - width) & (z < centre), 1 / width, 0.0)
        slope = torch.where((z > centre) & (z < centre + width), -1 / width, slope)
        for weights, mask in ((f_plus, pairs.positive), (f_minus, pairs.negative)):
            sides = slope * mask
            total += weights[:, None] * sides + sides * weights[None, :]
    expected = -(2 / size) * psi.detach() @ total
    torch.testing.assert_close(torch.autograd.grad(value, psi)[0], expected, rtol=1e-10, atol=1e-12)


rankings = st.lists(st.booleans(), min_size=2, max_size=9).filter(any)


@given(rankings, st.randoms(use_true_random=False))
def test_exact_average_precision_on_distinct_centres(positive, random):
    bins = 12
    squared = [4 * place / bins for place in random.sample(range(bins + 1), len(positive))]
    assert of_query(squared, positive, bins) == pytest.approx(average_precision(squared, positive), abs=1e-12)


@given(st.lists(st.booleans(), min_size=2, max_size=6).filter(any), st.randoms(use_true_random=False))
def test_never_above_average_precision_off_centre(positive, random):
    """Items at least two bins apart."""
    bins = 20
    slots = random.sample(range(0, bins - 2, 3), len(positive))
    squared = [4 * (slot + random.random()) / bins for slot in slots]
    assert of_query(squared, positive, bins) <= average_precision(squared, positive) + 1e-12


def test_perfect_ranking_in_disjoint_bins_is_1():
    squared, positive = [0.0, 0.1, 0.39, 2.1, 3.9], [True, True, True, False, False]
    assert of_query(squared, positive, 10) == pytest.approx(1, abs=1e-12)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=20))
def test_histogram_mass_is_the_number_of_positives(positions):
    values = torch.tensor([positions], dtype=torch.float64)
    mask = torch.arange(len(positions))[None] % 3 > 0
    histogram = soft_histogram(values, mask, 11)
    assert (histogram >= 0).all()
    assert histogram.sum().item() == pytest.approx(mask.sum().item())


@given(st.integers(0, 10_000))
def test_between_0_and_1(seed):
    rows = torch.randn(7, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    value = FastAP()(rows, torch.tensor([0, 0, 1, 1, 1, 2, 3]))
    assert -1e-12 <= value <= 1 + 1e-12
