"""Agreement with pytorch-metric-learning and scikit-learn where they are right (no ties, every class in pairs)."""

import numpy as np
import pytest
import torch

from lookalike.evaluation import evaluate
from lookalike.evaluation.clustering import ami, f1, nmi


def smooth(rows=400, classes=30, width=24):
    draw = np.random.default_rng(4)
    labels = np.r_[np.arange(classes), np.arange(classes), draw.integers(0, classes, rows - 2 * classes)]
    return (draw.standard_normal((classes, width))[labels] + draw.standard_normal((rows, width))).astype("f"), labels


@pytest.mark.filterwarnings("ignore")
def test_pytorch_metric_learning():
    accuracy_calculator = pytest.importorskip("pytorch_metric_learning.utils.accuracy_calculator")
    vectors, labels = smooth()
    unit = torch.nn.functional.normalize(torch.tensor(vectors), dim=1)
    include = ("precision_at_1", "r_precision", "mean_average_precision_at_r", "mean_reciprocal_rank")
    calculator = accuracy_calculator.AccuracyCalculator(include=include, k=len(labels) - 1)
    theirs = calculator.get_accuracy(unit, torch.tensor(labels))
    ours = evaluate(vectors, labels)
    for name, peer in (
        ("recall@1", include[0]),
        ("r_precision", include[1]),
        ("map@r", include[2]),
        ("mrr", include[3]),
    ):
        assert ours[name] == pytest.approx(theirs[peer], abs=1e-6)


def test_average_precision_and_gain_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    vectors, labels = smooth(120, 12)
    result = evaluate(vectors, labels, metrics="map ndcg@10,1000")
    unit = vectors.astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    scores = unit @ unit.T
    for row in range(len(labels)):
        others = np.arange(len(labels)) != row
        good, score = (labels == labels[row])[others], scores[row][others]
        assert result.per_query["map"][row] == pytest.approx(metrics.average_precision_score(good, score), abs=1e-12)
        for k in (10, 1000):
            theirs = metrics.ndcg_score(good[None].astype(int), score[None], k=k)
            assert result.per_query[f"ndcg@{k}"][row] == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("seed", range(20))
def test_clustering_scores_of_scikit_learn(seed):
    metrics = pytest.importorskip("sklearn.metrics")
    draw = np.random.default_rng(seed)
    rows = int(draw.integers(2, 200))
    clusters, classes = draw.integers(0, draw.integers(1, 20), rows), draw.integers(0, draw.integers(1, 20), rows)
    assert nmi(clusters, classes) == pytest.approx(metrics.normalized_mutual_info_score(classes, clusters), abs=1e-9)
    assert ami(clusters, classes) == pytest.approx(metrics.adjusted_mutual_info_score(classes, clusters), abs=1e-7)
    (_, wrong), (missed, right) = metrics.cluster.pair_confusion_matrix(classes, clusters).tolist()
    assert f1(clusters, classes) == pytest.approx(
        2 * right / max(2 * right + wrong + missed, 1) if right + wrong + missed else 1
    )


def test_degenerate_partitions():
    one, many = np.zeros(5, np.int64), np.arange(5)
    assert nmi(one, one) == ami(one, one) == 1
    assert nmi(one, many) == 0
    assert nmi(many, many) == pytest.approx(1)
    assert ami(many, many) == f1(many, many) == 1
    assert f1(one, many) == 0
