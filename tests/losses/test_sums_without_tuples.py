"""Sums that are never materialised, against the loops they stand for: ties, chunks, and the ends of a histogram."""

import importlib

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookalike import losses
from lookalike.losses.all_triplets import hinge_sums
from lookalike.losses.soft_histogram import soft_histogram
from lookalike.targets import Pairs
from tests.losses.cases import assert_equation
from tests.losses.facts import facts


@st.composite
def tables(draw):
    """Values on a grid, so that hinges sit exactly at 0 and values tie; any masks."""
    rows, columns = draw(st.integers(1, 4)), draw(st.integers(1, 7))
    cells = st.lists(st.integers(-3, 3), min_size=rows * columns, max_size=rows * columns)
    values = torch.tensor(draw(cells), dtype=torch.float64).view(rows, columns)
    kinds = torch.tensor(draw(cells)).view(rows, columns)
    return values, Pairs(kinds > 1, kinds < 0), draw(st.integers(0, 2))


@given(tables())
def test_all_triplets(table):
    values, pairs, margin = table
    slopes, total, count = torch.zeros_like(values), 0.0, 0
    for a in range(values.shape[0]):
        for p in pairs.positive[a].nonzero().flatten():
            for n in pairs.negative[a].nonzero().flatten():
                term = (values[a, p] - values[a, n] + margin).item()
                if term > 0:  # the sub-gradient at 0 is 0
                    total, count = total + term, count + 1
                    slopes[a, p] += 1
                    slopes[a, n] -= 1
    leaf = values.clone().requires_grad_()
    value, number = hinge_sums(leaf, pairs, float(margin))
    assert value.item() == pytest.approx(total, abs=1e-12)
    assert number.item() == count
    assert torch.equal(torch.autograd.grad(value, leaf)[0], slopes)


@given(st.lists(st.floats(0, 4), min_size=1, max_size=9), st.lists(st.booleans(), min_size=9, max_size=9))
def test_soft_histogram(positions, kept):
    values = torch.tensor([positions], dtype=torch.float64)
    mask = torch.tensor([kept[: len(positions)]])
    histogram = soft_histogram(values, mask, 5)[0]
    for node in range(5):
        expected = sum(max(0.0, 1 - abs(x - node)) for x, k in zip(positions, kept, strict=False) if k)
        assert histogram[node].item() == pytest.approx(expected, abs=1e-12)


def test_soft_histogram_loses_nothing_that_rounding_pushed_over_the_end():
    values = torch.tensor([[4 + 1e-15, -1e-16]], dtype=torch.float64)
    histogram = soft_histogram(values, torch.ones(1, 2, dtype=torch.bool), 5)[0]
    assert histogram.sum().item() == pytest.approx(2)


@pytest.mark.parametrize("chunk", [1, 250])
@pytest.mark.parametrize("name", ["angular", "smooth_ap", "pnp", "recall_at_k"])
def test_positives_a_chunk_at_a_time(name, chunk, monkeypatch):
    """The same value and gradient when the positives are taken in several chunks and recomputed."""
    place = "angular" if name == "angular" else "soft_ranks"
    monkeypatch.setattr(importlib.import_module(f"lookalike.losses.{place}"), "CHUNK", chunk)
    assert_equation(name, *facts(name).FORMS["default"], "uneven classes")


def test_a_hinge_at_0_is_not_active():
    """S_an − S_ap + γ = 0 for the first anchor, ¼ for the second: the mean over active triplets is ¼."""
    S = torch.tensor([[1.0, 0.5, 0.0], [0.5, 1.0, 0.25], [0.0, 0.25, 1.0]], dtype=torch.float64, requires_grad=True)
    value = losses.Triplet(margin=0.5, similarity="cosine").of_similarities(S, Pairs.within(torch.tensor([0, 0, 1])))
    assert value.item() == 0.25
    gradient = torch.autograd.grad(value, S)[0]
    assert gradient.tolist() == [[0, 0, 0], [-1, 0, 1], [0, 0, 0]]
