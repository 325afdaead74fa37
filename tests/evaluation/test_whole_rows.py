"""Huge classes: rows sorted whole give what counting gives, to the bit, with ties, hidden items and a gallery."""

import numpy as np
import pytest

from lookalike.evaluation import evaluate
from lookalike.evaluation.engine.panel import Blocks

SORTED, COUNTED = Blocks(many=1), Blocks(many=10**9)


def crowded(spread):
    """Three classes of 40; of small integers many scores are equal."""
    draw = np.random.default_rng(3)
    vectors = np.round(draw.standard_normal((120, 4)) * 1.5, 0 if spread is None else 6).astype("float32")
    return (vectors if spread is None else (1 + spread * vectors)), np.arange(120) % 3


def same(*data, **how):
    ours, theirs = (evaluate(*data, **how, blocks=blocks) for blocks in (SORTED, COUNTED))
    assert ours.facts == theirs.facts
    for name, values in theirs.per_query.items():
        np.testing.assert_array_equal(ours.per_query[name], values, err_msg=name)
    return ours


@pytest.mark.parametrize("ties", ["pessimistic", "optimistic", "expected"])
@pytest.mark.parametrize("geometry", ["sphere", "none"])
def test_ties(ties, geometry):
    assert same(*crowded(None), ties=ties, normalise=geometry).facts["tied"] > 0


@pytest.mark.parametrize("tolerance", [0.0, 1e-3])
def test_tight_embeddings(tolerance):
    same(*crowded(1e-3), tie_tolerance=tolerance)


def test_collapsed_embeddings():
    assert same(np.ones((120, 4), "float32"), np.arange(120) % 3)["recall@1"] == 0


def test_hidden_items():
    vectors, labels = crowded(None)
    same(vectors, labels, ignore=np.arange(120) % 7)
    same(vectors, labels, ignore=np.random.default_rng(0).random((120, 120)) < 0.4)


def test_gallery():
    vectors, labels = crowded(None)
    same(vectors[:30], labels[:30], gallery=vectors[30:], gallery_labels=labels[30:])
