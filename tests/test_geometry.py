"""The one file that knows a distance: projections, norms and distances against plain formulas."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookalike import geometry as g

vectors = st.integers(0, 10_000).map(
    lambda seed: torch.randn(5, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
)


def graded(function, rows):
    rows = rows.clone().requires_grad_()
    value = function(rows)
    (gradient,) = torch.autograd.grad((value * torch.arange(1, value.numel() + 1).view_as(value)).sum(), rows)
    return value.detach(), gradient


@given(vectors)
def test_sphere_and_ball(rows):
    lengths = rows.norm(dim=1, keepdim=True)
    torch.testing.assert_close(g.normalise(rows, "sphere"), rows / lengths)
    torch.testing.assert_close(g.normalise(rows, "ball"), rows / lengths.clamp(min=1))
    assert torch.equal(g.normalise(rows, "none"), rows)
    torch.testing.assert_close(g.norms(rows), lengths[:, 0])


@pytest.mark.parametrize("geometry", ["sphere", "ball", "none"])
def test_gradients_of_projections(geometry):
    """Inside the ball the identity, outside (I − eeᵀ)/‖z‖."""
    rows = torch.tensor([[0.3, 0.2, 0.1], [2.0, -1.0, 0.5]], dtype=torch.float64)
    weights = torch.arange(1.0, 7.0, dtype=torch.float64).view(2, 3)
    _, gradient = graded(lambda z: g.normalise(z, geometry), rows)
    for i in range(2):
        length = rows[i].norm()
        unit = rows[i] / length
        projected = (torch.eye(3) - torch.outer(unit, unit)) / length
        inside = geometry == "none" or (geometry == "ball" and length <= 1)
        torch.testing.assert_close(gradient[i], weights[i] if inside else projected @ weights[i])


@given(vectors, vectors)
def test_the_ball_is_a_projection_and_brings_nothing_apart(first, second):
    """NORM-B is 1-Lipschitz (the paper says 2), and projecting twice is projecting once [math I.6, ERR-40]."""
    moved = (g.normalise(first, "ball") - g.normalise(second, "ball")).norm(dim=1)
    assert (moved <= (first - second).norm(dim=1) + 1e-12).all()
    once = g.normalise(first, "ball")
    torch.testing.assert_close(g.normalise(once, "ball"), once)


@pytest.mark.parametrize("scale", [1e-30, 1e-20, 1.0, 1e20, 1e30])
def test_extreme_norms_normalise_exactly(scale):
    rows = torch.tensor([[3.0, 4.0], [-5.0, 12.0]])
    value, gradient = graded(lambda z: g.normalise(z, "sphere"), rows * scale)
    torch.testing.assert_close(value, torch.tensor([[0.6, 0.8], [-5 / 13, 12 / 13]]))
    assert gradient.isfinite().all()
    torch.testing.assert_close(g.norms(rows * scale) / scale, torch.tensor([5.0, 13.0]))


@pytest.mark.parametrize("function", [lambda z: g.normalise(z, "sphere"), lambda z: g.normalise(z, "ball"), g.norms])
def test_zero_rows_stay_zero(function):
    value, gradient = graded(function, torch.zeros(2, 3))
    assert (value == 0).all()
    assert gradient.isfinite().all()


def test_zero_rows_have_no_gradient_on_the_sphere():
    _, gradient = graded(lambda z: g.normalise(z, "sphere"), torch.zeros(2, 3))
    assert (gradient == 0).all()
    _, gradient = graded(g.norms, torch.zeros(2, 3))
    assert (gradient == 0).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_widened(dtype):
    rows = torch.randn(3, 4).to(dtype)
    assert g.compare(rows, None, "sphere").dtype == torch.float32
    assert torch.equal(g.compare(rows, None, "sphere"), g.compare(rows.float(), None, "sphere"))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(g.compare(rows, None, "sphere"), g.compare(rows.float(), None, "sphere"))


@pytest.mark.parametrize("geometry", ["sphere", "ball", "none"])
def test_compare_and_distances(geometry):
    rows, columns = (torch.randn(n, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(n)) for n in (4, 6))
    left, right = g.normalise(rows, geometry), g.normalise(columns, geometry)
    S, lengths = g.compare_with_squares(rows, columns, geometry)
    torch.testing.assert_close(g.compare(rows, columns, geometry), S)
    for i in range(4):
        for j in range(6):
            assert S[i, j].item() == pytest.approx(sum((left[i] * right[j]).tolist()), abs=1e-12)
    expected = torch.tensor([[(a - b).norm().item() for b in right] for a in left], dtype=torch.float64)
    torch.testing.assert_close(g.distances(S, lengths), expected)
    torch.testing.assert_close(g.squared_distances(S, lengths), expected**2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("geometry", ["sphere", "ball"])
def test_distance_of_equal_rows_is_0_with_gradient_0(geometry, dtype):
    """Rounding is not a distance: some of these rows have a square that is not 1 in the last bit."""
    rows = torch.randn(60, 37, generator=torch.Generator().manual_seed(0), dtype=dtype).requires_grad_()
    twice = torch.cat([rows, rows])
    S, lengths = g.compare_with_squares(twice, None, geometry)
    assert (S.diagonal() != 1).any()
    d = g.distances(S, lengths)
    own = torch.cat([d.diagonal(), d[:60, 60:].diagonal()])
    assert (own == 0).all()
    assert (torch.autograd.grad(own.sum(), rows)[0] == 0).all()


def test_small_distances_are_not_lost_in_float64():
    angles = torch.tensor([0.0, 1e-4, 1e-3], dtype=torch.float64)
    rows = torch.stack([angles.cos(), angles.sin()], 1)
    d = g.distances(g.compare(rows, None, "sphere"))
    torch.testing.assert_close(d[0], 2 * (angles / 2).sin(), rtol=1e-6, atol=0)


def test_raw_products_saturate_with_gradient_0_beyond():
    rows = torch.tensor([[1e20, 0.0], [1.0, 0.0]]).requires_grad_()
    S = g.compare(rows, None, "none")
    assert S.tolist() == [[pytest.approx(1e30), pytest.approx(1e20)], [pytest.approx(1e20), pytest.approx(1.0)]]
    gradient = torch.autograd.grad(S[0, 0], rows)[0]
    assert (gradient == 0).all()
    rows = torch.tensor([[1e-20, 0.0], [2e-20, 0.0]])
    assert g.compare(rows, None, "none").isfinite().all()


def test_squared_norms_saturate():
    rows = torch.tensor([[3.0, 4.0], [0.0, 1.0]])
    assert g.norms(rows).tolist() == [5, 1]
    assert g.norms(rows, squared=True).tolist() == [25, 1]
    assert g.norms(rows * 1e20, squared=True).tolist() == pytest.approx([1e30, 1e30])


@pytest.mark.parametrize("geometry", ["sphere", "ball", "none"])
def test_a_batch_with_itself_is_a_batch_with_its_copy(geometry):
    """One product in the backward pass instead of two: the same values, the same gradient."""
    points = torch.randn(7, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    weights = torch.randn(7, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    alone, twice = g.compare(points, None, geometry), g.compare(points, points, geometry)
    assert torch.allclose(alone, twice, atol=1e-12)
    (of_alone,), (of_twice,) = (torch.autograd.grad(value, points, weights) for value in (alone, twice))
    assert torch.allclose(of_alone, of_twice, atol=1e-12)


def test_distances_can_be_differentiated_twice():
    similarities = torch.tensor([[0.5, -0.2], [0.1, 0.9]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(g.distances, similarities)


def test_raw_products_of_a_batch_with_itself_take_it_once():
    points = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(g.compare(points, points, "none"), g.compare(points, None, "none"))
