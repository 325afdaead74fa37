"""Masked log-sum-exps, softplus and means against plain formulas."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookalike import reductions as r


@given(st.integers(0, 1000), st.sampled_from([1.0, 50.0, 1000.0]))
def test_log_sum_exp(seed, scale):
    generator = torch.Generator().manual_seed(seed)
    values = (scale * torch.randn(4, 5, generator=generator, dtype=torch.float64)).requires_grad_()
    mask = torch.rand(4, 5, generator=generator) < 0.6
    mask[0] = False
    result = r.log_sum_exp(values, mask)
    assert result[0] == -math.inf
    expected = values.masked_fill(~mask, -math.inf)
    rows = mask.any(1)
    torch.testing.assert_close(result[rows], expected.logsumexp(1)[rows])
    gradient = torch.autograd.grad(torch.where(rows, result, torch.zeros_like(result)).sum(), values)[0]
    softmax = torch.where(rows[:, None], expected.softmax(1), torch.zeros_like(values))
    torch.testing.assert_close(gradient, softmax.detach())
    assert torch.autograd.gradcheck(
        lambda x: r.log_sum_exp(x, mask)[rows], (values.detach().clamp(-9, 9).requires_grad_(),)
    )


@given(st.floats(-200, 200))
def test_softplus_to_the_last_digits(x):
    exact = max(x, 0.0) + math.log1p(math.exp(-abs(x)))
    value = r.softplus(torch.tensor(x, dtype=torch.float64)).item()
    assert value == pytest.approx(exact, rel=1e-14, abs=1e-16)


@pytest.mark.parametrize("scale", [3.0, -2.0])
def test_a_scaled_log_sum_exp_is_that_of_scaled_values(scale):
    values = torch.randn(4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    mask = torch.rand(4, 5, generator=torch.Generator().manual_seed(1)) > 0.4
    mask[2] = False
    inside, outside = r.log_sum_exp(values, mask, scale), r.log_sum_exp(scale * values, mask)
    assert torch.equal(inside, outside)
    gradient = torch.ones(4, dtype=torch.float64)
    (of_inside,), (of_outside,) = (torch.autograd.grad(value, values, gradient) for value in (inside, outside))
    assert torch.allclose(of_inside, of_outside, atol=1e-12)
    assert torch.autograd.gradcheck(lambda x: r.log_sum_exp(x, mask, scale)[:2], values)


def test_shares_are_the_softmax_and_keep_no_graph():
    values = torch.randn(4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    mask = torch.rand(4, 5, generator=torch.Generator().manual_seed(1)) > 0.4
    mask[2] = False
    sums, shares = r.log_softmax_sums(values, mask, 3.0)
    assert torch.equal(sums, r.log_sum_exp(values, mask, 3.0).detach())
    rows = mask.any(1)
    expected = (3 * values.detach()).masked_fill(~mask, -math.inf).softmax(1)
    torch.testing.assert_close(shares[rows], expected[rows])
    assert (shares[2] == 0).all()
    assert not sums.requires_grad
    assert not shares.requires_grad


def test_a_weighted_value_has_its_weights_as_gradient():
    values = torch.randn(2, 3, requires_grad=True)
    weights = torch.tensor([[1.0, -2.0, 0.0], [0.5, 0.0, 3.0]])
    value = r.weighted(values, torch.tensor(7.0), weights)
    assert value == 7
    assert torch.equal(torch.autograd.grad(2 * value, values)[0], 2 * weights)
