"""Regularisers against their formulas: mean norms, and the spectral decay ρ [math F.7]."""

import math

import pytest
import torch

from lookalike import regularisers
from lookalike.regularisers.spectral_decay import spectral_decay


def rows(seed=0, count=6, dim=4):
    return torch.randn(count, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("squared", [False, True])
def test_embedding_norm(squared):
    z = rows().requires_grad_()
    value = regularisers.EmbeddingNorm(weight=0.01, squared=squared)(z)
    lengths = [math.sqrt(sum(x.item() ** 2 for x in row)) for row in z.detach()]
    expected = 0.01 * sum(x**2 if squared else x for x in lengths) / 6
    assert value.item() == pytest.approx(expected, abs=1e-12)
    gradient = torch.autograd.grad(value, z)[0]
    slope = z.detach() * (2 if squared else 1) * 0.01 / 6
    for i in range(6):
        torch.testing.assert_close(gradient[i], slope[i] if squared else slope[i] / lengths[i])


def rho(singular):
    shares = [s / sum(singular) for s in singular]
    return -sum(math.log(len(shares) * max(p, 1e-12)) for p in shares) / len(shares)


@pytest.mark.parametrize("drop", [0, 1, 3])
def test_spectral_decay_of_known_singular_values(drop):
    singular = [5.0, 2.0, 1.0, 0.25]
    left, right = (torch.linalg.qr(rows(seed, n, n))[0] for seed, n in ((1, 6), (2, 4)))
    matrix = left[:, :4] @ torch.diag(torch.tensor(singular, dtype=torch.float64)) @ right
    assert spectral_decay(matrix, drop).item() == pytest.approx(rho(singular[drop:]), abs=1e-10)


def test_spectral_decay_is_the_divergence_from_a_flat_spectrum():
    assert spectral_decay(torch.linalg.qr(rows(count=4))[0]).item() == pytest.approx(0, abs=1e-12)
    assert spectral_decay(rows()).item() > 0
    # uncentred: a common offset is a direction like any other
    assert spectral_decay(rows() + 5).item() > spectral_decay(rows()).item()


def test_spectral_decay_gradient_lowers_it():
    z = rows(3).requires_grad_()
    regulariser = regularisers.SpectralDecay(weight=1.0)
    before = regulariser(z)
    gradient = torch.autograd.grad(before, z)[0]
    assert regulariser(z.detach() - 1e-3 * gradient) < before
    assert torch.autograd.gradcheck(regulariser, (z,))


def test_spectral_decay_takes_unit_vectors_by_default():
    z = rows(4)
    lengths = torch.linspace(0.1, 9, 6, dtype=torch.float64)[:, None]
    torch.testing.assert_close(regularisers.SpectralDecay()(z * lengths), regularisers.SpectralDecay()(z))
    raw = regularisers.SpectralDecay(normalise="none")
    assert raw(z * lengths) != raw(z)


@pytest.mark.parametrize("batch", [torch.zeros(3, 4), torch.ones(5, 4), torch.eye(4)[:1], torch.eye(4).half()])
@pytest.mark.parametrize("name", regularisers.names())
def test_finite_on_odd_batches(name, batch):
    z = batch.clone().requires_grad_()
    value = regularisers.build(name)(z)
    assert value.isfinite()
    assert torch.autograd.grad(value, z)[0].isfinite().all()


@pytest.mark.parametrize("scale", [1e-20, 1e20])
@pytest.mark.parametrize("name", regularisers.names())
def test_finite_at_extreme_norms(name, scale):
    z = (rows().float() * scale).requires_grad_()
    value = regularisers.build(name)(z)
    assert value.isfinite()
    assert torch.autograd.grad(value, z)[0].isfinite().all()


def test_spectral_decay_of_a_head_wider_than_its_features():
    """Beyond the rank there is rounding, whose gradient had no bounds."""
    features = rows(5, count=40, dim=6).float()
    wide = (features @ torch.linalg.qr(rows(6, count=16, dim=6).float())[0].T).requires_grad_()
    value = spectral_decay(wide)
    assert value.item() == pytest.approx(spectral_decay(features).item(), abs=1e-5)
    assert torch.autograd.grad(value, wide)[0].abs().max() < 1
