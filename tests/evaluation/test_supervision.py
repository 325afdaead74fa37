"""Several labels per item, matrices of relevance and grades, against full rankings in float64."""

import math
from dataclasses import replace
from itertools import chain, permutations, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lookalike.errors import UserError
from lookalike.evaluation import Result, evaluate
from lookalike.evaluation.engine import relevance
from lookalike.evaluation.engine.panel import Blocks
from lookalike.evaluation.pair_curves import tally_pairs
from lookalike.label_sets import LabelSets
from tests.evaluation.conftest import KS, brute_force, levels, scores_of

EXACT = 1e-12


def same(result, expected):
    for name, values in expected.items():
        np.testing.assert_allclose(result.per_query[name], values, rtol=0, atol=EXACT, err_msg=name)


class Alike:
    """A label that is equal to every label that shares a member: what the brute force compares."""

    def __init__(self, members):
        self.members = members

    def __eq__(self, other):
        return bool(self.members & other.members)

    __hash__ = None


@st.composite
def items(draw, most=14):
    rows = draw(st.integers(2, most))
    smooth = np.random.default_rng(draw(st.integers(0, 10**6))).standard_normal((rows, 2))
    vectors = smooth if draw(st.booleans()) else np.round(smooth)  # rounded: full of ties
    labels = draw(st.lists(st.sets(st.sampled_from("abcde"), max_size=3), min_size=rows, max_size=rows))
    return vectors.astype(np.float32), labels


def shares(labels, others=None):
    return any(a & b for i, a in enumerate(labels) for j, b in enumerate(others or labels) if others or i != j)


@settings(max_examples=40)
@given(items(), st.sampled_from(("pessimistic", "optimistic")))
def test_shared_labels_are_the_full_ranking(data, ties):
    vectors, labels = data
    if shares(labels):
        same(evaluate(vectors, labels, ties=ties), brute_force(vectors, list(map(Alike, labels)), ties=ties))


@settings(max_examples=25)
@given(items(6))
def test_expected_ties_are_the_mean_over_all_orders(data):
    vectors, labels = data
    if shares(labels):
        result = evaluate(vectors, labels, ties="expected")
        same(result, brute_force(vectors, list(map(Alike, labels)), ties="expected"))


@settings(max_examples=40)
@given(items(8), items(12))
def test_queries_in_a_gallery(query, item):
    if shares(query[1], item[1]):
        result = evaluate(query[0], query[1], gallery=item[0], gallery_labels=item[1])
        same(result, brute_force(query[0], list(map(Alike, query[1])), item[0], list(map(Alike, item[1]))))
        none = sum(not any(a & b for b in item[1]) for a in query[1])
        assert result.facts["excluded"] == none


class Row:
    """A label that is equal to what a row of a matrix says."""

    def __init__(self, row, matrix):
        self.row, self.matrix = row, matrix

    def __eq__(self, other):
        return bool(self.matrix[other.row, self.row])  # compared as item == query

    __hash__ = None


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.booleans(), st.booleans())
def test_a_matrix_says_itself_what_is_relevant(seed, gallery, ignore):
    draw = np.random.default_rng(seed)
    vectors, others = draw.standard_normal((9, 3)).astype("f"), draw.standard_normal((11, 3)).astype("f")
    matrix = draw.random((9, 11 if gallery else 9)) < 0.3
    matrix[0, 1] = True
    hidden = draw.random(matrix.shape) < 0.2 if ignore else None
    more = {"gallery": others} if gallery else {}
    expected = brute_force(
        vectors,
        [Row(row, matrix) for row in range(9)],
        others if gallery else None,
        [Row(row, matrix) for row in range(11)],
        ignored=hidden,
    )
    if not np.isnan(expected["map"]).all():
        for form in (matrix, torch.from_numpy(matrix)):
            same(evaluate(vectors, relevance=form, ignore=hidden, **more), expected)


def gained(ranking, k):
    return sum(gain / math.log2(place + 1) for place, gain in enumerate(ranking[:k], start=1))


def graded_reference(scores, gains, ties):
    """ndcg of one query: over all orders of tied items the least, the most, or the mean."""
    level = levels(scores, 1e-6)
    groups = [
        [g for g, at in zip(gains, level, strict=True) if at == value] for value in sorted(set(level), reverse=True)
    ]
    rankings = [[*chain(*choice)] for choice in product(*(set(permutations(group)) for group in groups))]
    best = sorted(gains, reverse=True)
    pick = {"pessimistic": min, "optimistic": max, "expected": np.mean}
    return {f"ndcg@{k}": pick[ties]([gained(order, k) / gained(best, k) for order in rankings]) for k in KS}


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from(("pessimistic", "optimistic", "expected")), st.booleans())
def test_grades_count_for_ndcg(seed, ties, tied):
    draw = np.random.default_rng(seed)
    vectors = draw.standard_normal((6, 2)).astype("f")
    if tied:
        vectors[3:5] = vectors[1]
    gains = draw.integers(0, 4, (6, 6)).astype(float) * (draw.random((6, 6)) < 0.7)
    np.fill_diagonal(gains, 0)
    gains[0, 1] = 2
    result = evaluate(vectors, relevance=gains, ties=ties)
    binary = evaluate(vectors, relevance=gains > 0, ties=ties)
    scores = scores_of(vectors, vectors)
    for row in range(6):
        others = [column for column in range(6) if column != row]
        if not gains[row].any():
            assert np.isnan(result.per_query["ndcg@4"][row])
            continue
        expected = graded_reference([scores[row, c] for c in others], [gains[row, c] for c in others], ties)
        for name, value in expected.items():
            assert result.per_query[name][row] == pytest.approx(value, abs=1e-9), (name, row)
    for name in binary:
        if not name.startswith("ndcg"):
            np.testing.assert_array_equal(result.per_query[name], binary.per_query[name])


def test_shared_labels_as_grades():
    vectors = np.array([[1, 0], [0.9, 0.1], [0.5, 0.5], [0, 1]], np.float32)
    labels = [{"a", "b"}, {"a"}, {"a", "b"}, {"c"}]
    result = evaluate(vectors, labels, relevance="shared")
    gains = np.array([[len(a & b) for b in labels] for a in labels], float)
    same(result, evaluate(vectors, relevance=gains).per_query)
    worth = (1 + 2 / math.log2(3)) / (2 + 1 / math.log2(3))
    assert result.per_query["ndcg@2"][0] == pytest.approx(worth)


@settings(max_examples=30)
@given(items(), st.booleans())
def test_one_label_each_gives_the_very_same_values(data, gallery):
    vectors, sets = data
    labels = [min(row) if row else "z" for row in sets]
    more = {"gallery": vectors[::-1].copy(), "gallery_labels": labels[::-1]} if gallery else {}
    if not gallery and len(set(labels)) == len(labels):
        return
    plain = evaluate(vectors, labels, **more)
    as_sets = more | ({"gallery_labels": [[label] for label in labels[::-1]]} if gallery else {})
    alike = np.array([[a == b for b in (labels[::-1] if gallery else labels)] for a in labels])
    matrix = {"gallery": more["gallery"]} if gallery else {}
    for other in (
        evaluate(vectors, [{label} for label in labels], **as_sets),
        evaluate(vectors, relevance=alike, **matrix),  # the other way through the engine
    ):
        assert other.values_by_name == plain.values_by_name
        for name, values in plain.per_query.items():
            np.testing.assert_array_equal(other.per_query[name], values)
    assert evaluate(vectors, [{label} for label in labels], **as_sets).labels == plain.labels


def crowd(rows=260):
    draw = np.random.default_rng(3)
    labels = [set(draw.choice(30, draw.integers(0, 4), replace=False).tolist()) for _ in range(rows)]
    vectors = draw.standard_normal((rows, 5)).astype("f")
    vectors[-60:] = vectors[:60] * 3
    return vectors, labels


@pytest.mark.parametrize(("few", "rows", "near"), [(0, 7, 0), (3, 64, 2**16), (24, 1024, 2**16)])
def test_no_result_depends_on_blocks_or_device(monkeypatch, few, rows, near):
    vectors, labels = crowd()
    expected = brute_force(vectors, list(map(Alike, labels)))
    monkeypatch.setattr(relevance, "ENTRIES", 100 * few + 50)
    blocks = Blocks(few=few, near=near, rows=rows, area=max(rows, 8) * 1024)
    same(evaluate(vectors, labels, blocks=blocks), expected)
    few_names = evaluate(vectors, labels, metrics="map@r,recall@1", blocks=replace(blocks, compiled=False))
    same(few_names, {name: expected[name] for name in ("map@r", "recall@1")})


def test_unlabelled_items_are_only_in_the_way():
    vectors = np.array([[1, 0], [0.99, 0.1], [0.9, 0.2]], np.float32)
    result = evaluate(vectors, ["ant", None, "ant"])
    assert result.per_query["recall@1"][0] == 0  # the unlabelled one is nearer
    assert np.isnan(result.per_query["recall@1"][1])
    assert result.facts["excluded"] == 1
    assert result.labels == ["ant", "", "ant"]


def test_unjudged_pairs_are_not_seen():
    vectors = np.array([[1, 0], [0.99, 0.1], [0.9, 0.2], [0, 1]], np.float32)
    judged = LabelSets(torch.tensor([[0, 4], [1, -1], [2, 4], [3, -1]]), opposed=torch.tensor([[0, 3]]))
    result = evaluate(vectors, judged)
    assert result.per_query["recall@1"][0] == 1  # row 1 is nearer, but nobody said whether it is like row 0
    both = evaluate(vectors, judged, metrics="roc tar@0.5")
    assert both["roc_auc"] == 1
    hidden = evaluate(vectors, judged, ignore=np.array([[False, False, True, False]] + [[False] * 4] * 3))
    assert np.isnan(hidden.per_query["recall@1"][0])  # the only item like it is hidden
    assert hidden.per_query["recall@1"][2] == 1


def test_curves_over_pairs_by_shared_labels():
    vectors, labels = crowd(60)
    tally = tally_pairs(vectors, labels)
    scores = scores_of(vectors, vectors, np.float32)
    alike = np.array([[bool(a & b) for b in labels] for a in labels])
    upper = np.triu_indices(60, 1)
    threshold = 0.3
    place = np.searchsorted(-tally.threshold, -threshold)
    assert tally.same[-1] == alike[upper].sum()
    assert tally.same[place] + tally.other[place] >= (scores[upper] > threshold).sum()
    assert (
        evaluate(vectors, labels, metrics="roc")["roc_auc"]
        == evaluate(vectors, relevance=alike, metrics="roc")["roc_auc"]
    )


def test_confusions_are_with_what_is_not_relevant():
    vectors = np.array([[1, 0], [0.95, 0.1], [0, 1], [0.1, 1]], np.float32)
    result = evaluate(vectors, [{"a", "b"}, {"c"}, {"b", "c"}, {"a"}])
    assert ("a|b", "c", 1) in [tuple(pair) for pair in result.confused()]
    assert set(result.by_class("recall@1")) == {"a", "b", "c"}
    from_json = type(result).from_json(result.to_json())
    assert from_json.labels == result.labels


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"labels": [{1}, {1, 2}, {2}], "metrics": "nmi"}, "nmi compare classes and need one label per item"),
        ({"labels": [{1}, {1, 2}, {2}], "metrics": "uniformity,intra"}, "intra compare classes"),
        ({"labels": [{1, 4}, {2}, {3}]}, "no query has a relevant item: no label is shared"),
        ({"labels": [{1}, {2}]}, "2 labels for 3 embeddings"),
        ({}, "give labels, or relevance as a matrix"),
        ({"relevance": np.ones((2, 3))}, r"the relevance matrix is \(2, 3\), queries × gallery are \(3, 3\)"),
        ({"relevance": -np.ones((3, 3))}, "holds negative numbers"),
        ({"relevance": np.full((3, 3), np.nan)}, "NaN"),
        ({"labels": [1, 1, 2], "relevance": "shard"}, "relevance is a matrix queries × gallery or 'shared'"),
    ],
)
def test_mistakes_are_one_line(settings, message):
    with pytest.raises(UserError, match=message) as error:
        evaluate(np.eye(3, dtype="f"), **settings)
    assert "\n" not in str(error.value)


def test_what_needs_no_classes_is_measured():
    result = evaluate(np.eye(4, 3, dtype="f"), [{1}, {1, 2}, {2}, None], metrics="uniformity recall@1")
    assert set(result) == {"uniformity", "recall@1"}


def test_a_query_counts_for_each_of_its_labels():
    vectors = torch.randn(40, 4, generator=torch.Generator().manual_seed(0))
    labels = [None if row == 7 else {"abcde"[row % 5], ("a|b", "ab")[row % 2]} for row in range(40)]
    result = evaluate(vectors, labels, metrics=["recall@1"])
    values = result.per_query["recall@1"]
    for label, share in result.by_class("recall@1").items():
        rows = [row for row, own in enumerate(labels) if own and label in own and not np.isnan(values[row])]
        assert share.queries == len(rows)
        assert share.value == pytest.approx(values[rows].mean())
    assert set(result.by_class("recall@1")) == {*"abcde", "a|b", "ab"}
    again = Result.from_json(result.to_json())
    assert again.by_class("recall@1") == result.by_class("recall@1")
    assert "sets" not in evaluate(vectors, [row % 5 for row in range(40)], metrics=["recall@1"]).to_json()
