"""The shapes of published protocols: query and gallery lists, lists of identities, long tails, one huge class."""

import numpy as np
import pytest

from lookalike.evaluation import evaluate
from lookalike.evaluation.engine.panel import Blocks, partition, waves
from lookalike.evaluation.query_draw import one_per_class


def test_in_shop_lists():
    """14,218 queries and 12,612 gallery images of the same 3,985 classes; no self removal."""
    draw = np.random.default_rng(0)
    classes = 3_985
    labels = np.r_[np.arange(classes), draw.integers(0, classes, 14_218 - classes)]
    items = np.r_[np.arange(classes), draw.integers(0, classes, 12_612 - classes)]
    centres = draw.standard_normal((classes, 8))
    queries = (centres[labels] + 0.3 * draw.standard_normal((len(labels), 8))).astype("f")
    gallery = (centres[items] + 0.3 * draw.standard_normal((len(items), 8))).astype("f")
    result = evaluate(queries, labels, gallery=gallery, gallery_labels=items, metrics="recall@1,10,20,30,40,50 map@r")
    assert result.facts["counted"] == 14_218
    unit = [part / np.linalg.norm(part, axis=1, keepdims=True) for part in (queries, gallery)]
    for row in (0, 777, 14_217):
        best = items[np.argsort(-(unit[0][row] @ unit[1].T), kind="stable")] == labels[row]
        for k in (1, 10, 50):
            assert result.per_query[f"recall@{k}"][row] == best[:k].any()


def test_a_query_in_the_gallery_under_its_own_label_is_found():
    vectors = np.eye(3, dtype="f")
    result = evaluate(vectors, [0, 1, 2], gallery=vectors, gallery_labels=[0, 1, 2])
    assert result["recall@1"] == 1


def test_one_image_per_identity():
    labels = np.arange(90) % 20
    queries, gallery = one_per_class(labels, seed=1)
    assert sorted(labels[gallery]) == list(range(20))
    assert sorted(np.r_[queries, gallery]) == list(range(90))
    assert gallery.tolist() != one_per_class(labels, seed=2)[1].tolist()
    vectors = np.random.default_rng(0).standard_normal((90, 4)).astype("f")
    result = evaluate(
        vectors[queries],
        labels[queries],
        gallery=vectors[gallery],
        gallery_labels=labels[gallery],
        metrics="cmc recall@5",
    )
    assert result.curves["cmc"]["recall"][4] == pytest.approx(result["recall@5"])
    assert result.curves["cmc"]["recall"][19] == 1  # everyone is found among twenty


@pytest.mark.parametrize("budget", [3 * 2**20, 5_000])
def test_one_huge_class_and_a_long_tail(reference, budget):
    draw = np.random.default_rng(3)
    labels = np.r_[np.zeros(150, int), 1 + draw.geometric(0.1, 150)]
    vectors = draw.standard_normal((300, 6)).astype("f")
    blocks, question = Blocks(budget=budget, entries=budget // 3), ranking_question(labels)
    pieces = waves(question, partition(question, None, blocks), None, blocks)
    assert (len(pieces) > 3) == (budget == 5_000)
    result = evaluate(vectors, labels, blocks=blocks)
    for name, values in reference(vectors, labels).items():
        np.testing.assert_allclose(result.per_query[name], values, atol=1e-12, err_msg=name)


def ranking_question(labels):
    from lookalike.evaluation.engine.question import ask

    return ask(np.unique(labels, return_inverse=True)[1], None, None)


def test_one_class_only_and_two_samples():
    assert evaluate(np.random.default_rng(0).standard_normal((50, 3)).astype("f"), ["x"] * 50)["map"] == 1
    result = evaluate(np.array([[1.0, 0.0], [0.0, 1.0]], "f"), [5, 5])
    assert result["recall@1"] == result["map@r"] == result["precision@1000"] == 1
    assert result["map@c"] == 0.5  # the form of the code: perfect is (n − 1) / n


def test_ids_above_two_to_the_24_stay_apart():
    vectors = np.array([[1, 0], [1, 0.01], [0, 1], [0.01, 1]], "f")
    labels = np.array([2**24, 2**24 + 1, 2**24, 2**24 + 1])
    assert evaluate(vectors, labels)["recall@1"] == 0
