"""Nearest neighbours: exact, in a fixed order, whatever the blocks."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lookalike.evaluation import neighbours
from lookalike.evaluation.engine.space import place
from lookalike.evaluation.neighbours import search
from lookalike.geometry import normalise


def full_sort(queries, gallery, k, leave_one_out):
    left, right = (normalise(torch.tensor(part).double(), "sphere").float().double() for part in (queries, gallery))
    scores = (left[:, None] * right).sum(2)
    if leave_one_out:
        scores.fill_diagonal_(-torch.inf)
    return scores.sort(dim=1, descending=True, stable=True).indices[:, :k]


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(2, 40),
    k=st.integers(1, 50),
    whole=st.booleans(),
    leave_one_out=st.booleans(),
)
def test_agrees_with_a_full_stable_sort(seed, rows, k, whole, leave_one_out):
    draw = np.random.default_rng(seed)
    vectors = draw.integers(-2, 3, (rows, 3)) if whole else draw.standard_normal((rows, 3))
    vectors = vectors.astype("f")
    gallery = vectors if leave_one_out else np.concatenate((vectors[::2], vectors))
    nearest = neighbours(vectors, None if leave_one_out else gallery, k)
    expected = full_sort(vectors, gallery, min(k, len(gallery) - leave_one_out), leave_one_out)
    assert nearest.indices.tolist() == expected.tolist()


def test_blocks_do_not_matter():
    draw = np.random.default_rng(0)
    gallery = draw.standard_normal((500, 8)).astype("f")
    gallery[250:] = gallery[:250]  # every item twice: ties everywhere
    queries = draw.standard_normal((70, 8)).astype("f")
    expected = full_sort(queries, gallery, 20, leave_one_out=False)
    among_themselves = full_sort(gallery, gallery, 20, leave_one_out=True)
    left, right = (place(torch.tensor(rows), np.arange(len(rows)), "sphere", 1.0) for rows in (queries, gallery))
    for block, spare in (((1024, 8192), 32), ((7, 64), 3), ((64, 33), 0)):
        assert search(left, right, 20, False, None, block, spare).indices.equal(expected)
        assert search(right, right, 20, True, None, block, spare).indices.equal(among_themselves)


@pytest.mark.parametrize("geometry", ["ball", "none"])
def test_scores_are_half_squared_distances(geometry):
    draw = np.random.default_rng(1)
    vectors = draw.standard_normal((30, 4)).astype("f")
    nearest = neighbours(vectors, None, 5, normalise=geometry)
    placed = normalise(torch.tensor(vectors), geometry).double()
    distances = torch.cdist(placed, placed).fill_diagonal_(torch.inf)
    assert nearest.indices.equal(distances.sort(dim=1).indices[:, :5])


def test_progress_and_errors():
    calls = []
    neighbours(np.eye(4, dtype="f"), None, 2, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(4, 4)]
    with pytest.raises(ValueError, match="k must be at least 1"):
        neighbours(np.eye(4, dtype="f"), None, 0)
