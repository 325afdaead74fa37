"""k-means and greedy k-center."""

import pytest
import torch

from lookalike.cluster import _split_largest, greedy_k_center, k_means, nearest_centres
from lookalike.errors import UserError


def blobs(generator, rows=200, clusters=5, spread=0.1):
    centres = 10 * torch.randn(clusters, 4, generator=generator)
    labels = torch.arange(rows) % clusters
    return centres[labels] + spread * torch.randn(rows, 4, generator=generator), labels


@pytest.mark.parametrize("backend", ["torch", "faiss"])
def test_k_means(backend, generator):
    if backend == "faiss":
        pytest.importorskip("faiss")
    points, _ = blobs(generator, spread=3.0)
    events = []
    result = k_means(points, 12, seed=3, backend=backend, progress=lambda done, total: events.append((done, total)))
    assert events[-1] == (20, 20)
    again = k_means(points, 12, seed=3, backend=backend)
    assert result.assignment.equal(again.assignment)
    assert not result.assignment.equal(k_means(points, 12, seed=4, backend=backend).assignment)
    distances = torch.cdist(points, result.centres)
    assert result.assignment.equal(distances.argmin(1))
    assert result.objective == pytest.approx(float(distances.amin(1).square().sum()), rel=1e-4)
    once = k_means(points, 12, iterations=1, seed=3, backend=backend)
    assert result.objective < once.objective


def test_both_backends_start_alike_and_agree(generator):
    pytest.importorskip("faiss")
    points, _ = blobs(generator, spread=3.0)
    one, other = (k_means(points, 9, backend=backend) for backend in ("torch", "faiss"))
    assert one.objective == pytest.approx(other.objective, rel=1e-3)
    assert (one.assignment == other.assignment).float().mean() > 0.95


def test_empty_clusters_take_half_of_the_largest():
    centres, sizes = torch.tensor([[1.0, 1.0], [5.0, 5.0], [9.0, 9.0]]), torch.tensor([10, 0, 3])
    _split_largest(centres, sizes)
    assert sizes.tolist() == [5, 5, 3]
    torch.testing.assert_close(centres[:2], torch.ones(2, 2), atol=2e-3, rtol=0)
    assert not centres[0].equal(centres[1])


def test_a_cluster_that_starts_empty_is_used_in_the_end():
    far = torch.tensor([[0.0, 0.0]] * 40 + [[100.0, 0.0]] * 4 + [[100.0, 3.0]] * 4)
    for seed in range(20):  # most starts take three equal points
        assert k_means(far, 3, seed=seed, backend="torch").objective <= 40


def test_blocks_do_not_matter(monkeypatch, generator):
    points, _ = blobs(generator)
    whole = nearest_centres(points, points[:7])
    monkeypatch.setattr("lookalike.cluster.BLOCK", 30)
    parts = nearest_centres(points, points[:7])
    assert whole[0].equal(parts[0])
    # ‖x‖² − 2 ⟨x, c⟩ + ‖c‖²: products of other shapes round otherwise, in units of the last place of these squares
    rounding = 8 * torch.finfo(points.dtype).eps * points.square().sum(1).max().item()
    torch.testing.assert_close(whole[1], parts[1], atol=rounding, rtol=0)


@pytest.mark.parametrize("backend", ["torch", "auto"])
def test_the_default_dtype_does_not_matter(backend, generator):
    points, _ = blobs(generator)
    expected = k_means(points, 5, backend=backend)
    torch.set_default_dtype(torch.float64)
    try:
        result = k_means(points.double(), 5, backend=backend)
    finally:
        torch.set_default_dtype(torch.float32)
    assert result.assignment.equal(expected.assignment)
    assert result.centres.equal(expected.centres)


def test_mistakes(generator):
    points, _ = blobs(generator)
    for settings, message in (
        ({"clusters": 0}, "1 to 200 clusters"),
        ({"clusters": 201}, "1 to 200 clusters"),
        ({"clusters": 2, "iterations": 0}, "at least one iteration"),
        ({"clusters": 2, "backend": "fais"}, "faiss"),
    ):
        with pytest.raises((UserError, TypeError), match=message):
            k_means(points, **settings)
    with pytest.raises(UserError, match="NaN"):
        k_means(torch.full((3, 2), torch.nan), 2)


def test_greedy_k_center_is_farthest_first(generator):
    points = torch.randn(30, 3, generator=generator)
    indices = greedy_k_center(points, 5, centres=points[:1]).tolist()
    centres = [0]
    for index in indices:
        distances = torch.cdist(points, points[centres]).amin(1)
        assert index == int(distances.argmax())
        centres.append(index)
