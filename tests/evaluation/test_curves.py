"""Curves over pairs and over ranks."""

import numpy as np
import pytest

from lookalike.evaluation import evaluate, pair_curves


def cloud(rows=150, classes=12, width=6, seed=0):
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, classes, rows)
    return (draw.standard_normal((classes, width))[labels] + draw.standard_normal((rows, width))).astype("f"), labels


def all_pairs(vectors, labels, hidden=None):
    unit = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype("f")
    keep = ~np.eye(len(labels), dtype=bool)
    if hidden is not None:
        keep &= ~hidden
    return (unit @ unit.T)[keep], (labels[:, None] == labels)[keep]


def test_exact_curves_are_those_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    vectors, labels = cloud()
    result = evaluate(vectors, labels, metrics="pr roc tar@0.01,0.1")
    scores, same = all_pairs(vectors, labels)
    assert result["roc_auc"] == pytest.approx(metrics.roc_auc_score(same, scores), abs=1e-5)
    precision, recall, _ = metrics.precision_recall_curve(same, scores)
    assert result["pr_auc"] == pytest.approx(metrics.auc(recall, precision), abs=1e-4)
    assert result["pr_ap"] == pytest.approx(metrics.average_precision_score(same, scores), abs=1e-9)
    for far in (0.01, 0.1):
        others = np.sort(scores[~same])[::-1]
        threshold = others[int(far * len(others) + 1e-9)]  # the first that must be refused
        assert result[f"tar@{far:g}"] == pytest.approx((scores[same] > threshold).mean(), abs=3 / same.sum())


def test_binned_curves_are_near_the_exact_ones(monkeypatch):
    vectors, labels = cloud(300)
    for normalise in ("sphere", "ball", "none"):
        exact = evaluate(vectors, labels, metrics="pr roc tar@0.01", normalise=normalise)
        with monkeypatch.context() as patch:
            patch.setattr(pair_curves, "EXACT_PAIRS", 10)
            patch.setattr(pair_curves, "BLOCK", 64)
            binned = evaluate(vectors, labels, metrics="pr roc tar@0.01", normalise=normalise)
        for name in exact:
            assert binned[name] == pytest.approx(exact[name], abs=0.01)


def test_ignored_pairs_are_not_counted():
    metrics = pytest.importorskip("sklearn.metrics")
    vectors, labels = cloud(100)
    groups = np.arange(100) % 4
    scores, same = all_pairs(vectors, labels, groups[:, None] == groups)
    result = evaluate(vectors, labels, metrics="roc", ignore=groups)
    assert result["roc_auc"] == pytest.approx(metrics.roc_auc_score(same, scores), abs=1e-5)
    mask = np.random.default_rng(1).random((100, 100)) < 0.3
    scores, same = all_pairs(vectors, labels, mask)
    result = evaluate(vectors, labels, metrics="roc", ignore=mask)
    assert result["roc_auc"] == pytest.approx(metrics.roc_auc_score(same, scores), abs=1e-5)


def test_pairs_of_queries_and_gallery():
    metrics = pytest.importorskip("sklearn.metrics")
    vectors, labels = cloud(90)
    unit = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype("f")
    result = evaluate(vectors[:30], labels[:30], gallery=vectors[30:], gallery_labels=labels[30:], metrics="roc")
    theirs = metrics.roc_auc_score((labels[:30, None] == labels[30:]).ravel(), (unit[:30] @ unit[30:].T).ravel())
    assert result["roc_auc"] == pytest.approx(theirs, abs=1e-5)


def test_cmc_is_recall_at_every_k():
    vectors, labels = cloud()
    result = evaluate(vectors, labels, metrics="cmc recall@1,8,100")
    for k in (1, 8, 100):
        assert result.curves["cmc"]["recall"][k - 1] == pytest.approx(result[f"recall@{k}"], abs=1e-12)


def test_retrieval_curve_is_interpolated_precision():
    vectors, labels = cloud(60, 5)
    curve = evaluate(vectors, labels, metrics="retrieval_pr").curves["retrieval_pr"]
    unit = vectors.astype(np.float64) / np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = np.zeros(101)
    for row in range(60):
        order = [item for item in np.argsort(-(unit @ unit[row])) if item != row]
        hits = (labels[order] == labels[row]).cumsum()
        precision, recall = hits / np.arange(1, 60), hits / hits[-1]
        expected += [max(precision[recall >= level - 1e-9]) for level in np.linspace(0, 1, 101)]
    np.testing.assert_allclose(curve["precision"], expected / 60, atol=1e-9)


def test_the_retrieval_curve_of_expected_ties_is_the_pessimistic_one():
    vectors, labels = np.repeat(np.eye(3, dtype="f"), 4, axis=0), np.arange(12) % 2
    one, other = (
        evaluate(vectors, labels, metrics="retrieval_pr map", ties=ties) for ties in ("expected", "pessimistic")
    )
    assert one["map"] > other["map"]
    np.testing.assert_array_equal(one.curves["retrieval_pr"]["precision"], other.curves["retrieval_pr"]["precision"])


def test_the_area_begins_at_recall_0_with_precision_1():
    tally = pair_curves.Tally(np.array([0.9, 0.1]), np.array([1.0, 2.0]), np.array([1.0, 6.0]))
    assert pair_curves.pr_area(tally) == pytest.approx(0.5 * (1 + 0.5) / 2 + 0.5 * (0.5 + 0.25) / 2)
    assert pair_curves.average_precision(tally) == pytest.approx(0.5 * 0.5 + 0.5 * 0.25)
    assert pair_curves.roc_area(tally) == pytest.approx(1 / 6 * 0.25 + 5 / 6 * 0.75)
