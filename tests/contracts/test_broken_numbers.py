"""A NaN or an infinity among the vectors makes every loss NaN, also where a mask, a hinge or a miner would hide it."""

from itertools import product

import pytest
import torch

from lookalike.targets import Pairs
from tests.contracts.catalogue import CLASS_NAMES, NAMES, PAIR_NAMES, SAMPLED, TAKES_TRIPLETS, build, mined, rows
from tests.contracts.test_finite import BATCHES, LABELS

BROKEN = [torch.nan, torch.inf, -torch.inf]
FILLED = [batch for batch, (embeddings, _) in BATCHES.items() if len(embeddings)]


def broken(vectors, value=torch.nan, row=0):
    vectors = vectors.clone()
    vectors[row, 1] = value
    return vectors.requires_grad_()


@pytest.mark.parametrize("name", NAMES)
def test_one_embedding_of_any_batch(name):
    for batch, value in product(FILLED, BROKEN):
        embeddings, labels = BATCHES[batch]
        result = build(name)(broken(embeddings, value), labels)
        assert result.isnan(), (batch, value)
        result.backward()


@pytest.mark.parametrize("name", NAMES)
def test_all_embeddings(name):
    assert build(name)(rows(8) * torch.nan, LABELS).isnan()


@pytest.mark.parametrize("name", CLASS_NAMES)
def test_a_single_class_overall(name):
    assert build(name, classes=1)(broken(rows(3)), torch.zeros(3, dtype=torch.int64)).isnan()


@pytest.mark.parametrize("name", [name for name in PAIR_NAMES if name not in SAMPLED])
def test_a_candidate(name):
    """The last one plays no part: it is in neither mask. It is not hidden either."""
    candidate_labels = torch.tensor([0, 1, 2, 3, 0, 1])
    pairs = Pairs.across(LABELS, candidate_labels)
    pairs.positive[:, 5] = pairs.negative[:, 5] = False
    for row in (0, 5):
        candidates = broken(rows(6, seed=1), row=row)
        assert build(name)(rows(8), pairs, candidates=candidates).isnan()


@pytest.mark.parametrize("name", TAKES_TRIPLETS)
def test_mined_triplets(name):
    for candidates in (None, broken(rows(8, seed=1), row=3)):
        embeddings = rows(8) if candidates is not None else broken(rows(8))
        assert build(name)(embeddings, mined(rows(8), LABELS), candidates=candidates).isnan()


@pytest.mark.parametrize("name", CLASS_NAMES)
def test_a_weight_of_a_class(name):
    """Weights of classes are vectors like any other."""
    loss = build(name)
    with torch.no_grad():
        next(loss.parameters())[0, 1] = torch.nan
    assert loss(rows(8), LABELS).isnan()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("fastap", "histogram")])
def test_every_geometry(name):
    """An infinite row on the ball is no exception: it has no direction."""
    for geometry, value, row in product(["sphere", "ball", "none"], BROKEN, (0, 3)):
        result = build(name, normalise=geometry)(broken(rows(8), value, row), LABELS)
        assert result.isnan(), (geometry, value, row)
