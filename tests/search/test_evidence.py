"""What the hits say is what loops say; the weights are those of the best logistic curve."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lookalike.search.calibration.evidence import HITS, IN_0_2_0, Rule, SeenHits, densities, mutual_similarities, read
from lookalike.search.calibration.logistic import chance, crossed, fit


def by_loops(similarities, labels, vectors):
    """One query, in plain Python, as the docstring of each column says."""
    k = len(labels)
    mutual = {(a, b): float(np.dot(vectors[a], vectors[b])) for a in range(k) for b in range(k)}
    same = [place for place in range(k) if labels[place] == labels[0]]
    other = [similarities[place] for place in range(k) if labels[place] != labels[0]]
    inside = [mutual[a, b] for a in same for b in same if a != b]
    near = [mutual[a, b] for a in range(min(k, 10)) for b in range(min(k, 10)) if a != b]
    around = sorted((mutual[0, b] for b in range(1, k)), reverse=True)[:10]
    mean = lambda values: sum(values) / len(values) if values else similarities[0]  # noqa: E731
    agree = lambda first: sum(place < first for place in same) / min(first, k)  # noqa: E731
    return [
        similarities[0],
        max(other) if other else min(similarities),
        min(similarities),
        mean(similarities[:10]),
        np.log(len(same)),
        agree(5),
        agree(10),
        len(same) / k,
        mean([similarities[place] for place in same]),
        mean(inside),
        mean(around),
        mean(near),
    ]


@settings(deadline=None, max_examples=60)
@given(st.integers(1, HITS), st.integers(1, 6), st.integers(0, 10_000))
def test_evidence_is_that_of_loops(k, classes, seed):
    draw = np.random.default_rng(seed)
    vectors = draw.standard_normal((3, k, 5))
    vectors /= np.linalg.norm(vectors, axis=2, keepdims=True)
    labels = draw.integers(0, classes, (3, k))
    similarities = -np.sort(-draw.uniform(-1, 1, (3, k)), axis=1)
    seen = SeenHits(
        similarities, labels, np.full(labels.shape, 9.0), mutual_similarities(vectors, "sphere"), np.full(3, 99.0)
    )
    result = read(seen, None).evidence
    assert np.isfinite(result).all()
    for row in range(3):
        expected = by_loops(similarities[row].tolist(), labels[row].tolist(), vectors[row])
        np.testing.assert_allclose(result[row, :IN_0_2_0], expected, atol=1e-12)


@pytest.mark.parametrize("geometry", ["ball", "none"])
def test_hits_are_compared_as_the_index_compares(geometry):
    points = np.random.default_rng(0).standard_normal((4, 3))
    result = mutual_similarities(points, geometry)
    assert result == pytest.approx(-((points[:, None] - points[None]) ** 2).sum(2) / 2)


def test_weights_are_the_minimum_of_the_penalised_loss():
    draw = np.random.default_rng(0)
    rows = draw.standard_normal((400, 4)) * [1, 10, 0.1, 1] + [0, 5, 1, 0]
    right = draw.random(400) < 1 / (1 + np.exp(-(rows[:, 0] - 0.2 * rows[:, 1])))
    weights = fit(rows, right, np.ones(400), ridge=1.0)
    scale = torch.tensor(rows.std(0))
    free = torch.tensor(weights, dtype=torch.float64, requires_grad=True)
    logits = torch.tensor(rows) @ free[:-1] + free[-1]
    loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, torch.tensor(right).double(), reduction="sum")
    (loss + 0.5 * ((free[:-1] * scale) ** 2).sum()).backward()
    assert free.grad is not None
    assert float(free.grad.abs().max()) < 1e-6
    assert chance(rows, weights).mean() == pytest.approx(right.mean(), abs=1e-9)  # the constant is not penalised


def test_evidence_that_separates_or_does_not_vary_is_no_trouble():
    rows = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [3.0, 1.0]])
    weights = fit(rows, np.array([False, False, True, True]), np.ones(4))
    assert np.isfinite(weights).all()
    assert (np.diff(chance(rows, weights)) > 0).all()


def seen(similarities, labels, sizes):
    k = len(labels)
    return SeenHits(
        np.array([similarities]), np.array([labels]), np.array([sizes], float), np.eye(k)[None], np.array([99.0])
    )


def test_a_class_of_three_photos_is_not_outvoted_by_one_of_fifty():
    hits = seen([0.8, 0.79, 0.78, 0.7], [0, 1, 1, 0], [50, 3, 3, 50])
    assert read(hits, None).place.tolist() == [0]
    assert read(hits, Rule(10.0, 1.0)).place.tolist() == [1]
    assert read(hits, Rule(10.0, 1.0)).second.tolist() == [0]
    expected = np.log(np.exp(10 * (np.array([0.79, 0.78]) - 0.8)).sum()) - np.log(3)
    assert densities(hits, Rule(10.0, 1.0))[0, 1] == pytest.approx(expected)
    assert read(seen([0.8, 0.7], [2, 2], [5, 5]), Rule(10.0, 1.0)).second.tolist() == [-1]


def test_evidence_that_holds_for_no_other_class_counts_for_nothing():
    """Every class is told by a column of its own: the fits without it know nothing."""
    draw = np.random.default_rng(0)
    classes = np.repeat(np.arange(20), 30)
    right = draw.random(600) < 0.5
    rows = np.where(classes[:, None] == np.arange(20), 2.0 * right[:, None] - 1, 0.0)
    weights, apart = crossed(rows, right, np.ones(600), classes)
    assert apart == pytest.approx(np.full(600, right.mean()), abs=0.05)
    assert chance(rows, weights) == pytest.approx(np.full(600, right.mean()), abs=0.05)
