"""Ranks by counting against full rankings as loops, whatever the classes, ties, masks, block sizes and threads."""

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from lookalike.evaluation import evaluate
from lookalike.evaluation.engine.panel import Blocks
from lookalike.evaluation.names import ranking_names

EXACT = 1e-12


def same(result, expected):
    assert set(result.per_query) == set(expected)
    for name, values in expected.items():
        np.testing.assert_allclose(result.per_query[name], values, rtol=0, atol=EXACT, err_msg=name)
        assert result[name] == pytest.approx(np.nanmean(values), abs=EXACT)


@st.composite
def sets(draw, most=24):
    """Embeddings and labels: smooth or full of ties, balanced or with singletons, numbers or strings or huge ids."""
    rows, width = draw(st.integers(2, most)), draw(st.integers(1, 4))
    if draw(st.booleans()):
        vectors = draw(hnp.arrays(np.float32, (rows, width), elements=st.integers(-2, 2).map(float)))
    else:
        vectors = np.random.default_rng(draw(st.integers(0, 10**6))).standard_normal((rows, width)).astype(np.float32)
    kind = draw(st.sampled_from((str, lambda code: code + 2**24, lambda code: code + 2**60, lambda code: (code, "x"))))
    codes = draw(st.lists(st.integers(0, draw(st.integers(0, 6))), min_size=rows, max_size=rows))
    return vectors, [kind(code) for code in codes]


def has_pairs(labels):
    return len(set(labels)) < len(labels)


def check_leave_one_out(data, ties, tolerance, reference):
    vectors, labels = data
    if has_pairs(labels):
        expected = reference(vectors, labels, ties=ties, tolerance=max(tolerance, 1e-12))
        same(evaluate(vectors, labels, ties=ties, tie_tolerance=tolerance), expected)


def check_query_gallery(query, item, ties, reference):
    width = min(query[0].shape[1], item[0].shape[1])
    queries, gallery = query[0][:, :width].copy(), item[0][:, :width].copy()
    labels, gallery_labels = [str(label) for label in query[1]], [str(label) for label in item[1]]
    if set(labels) & set(gallery_labels):
        result = evaluate(queries, labels, gallery=gallery, gallery_labels=gallery_labels, ties=ties)
        same(result, reference(queries, labels, gallery, gallery_labels, ties=ties))
        assert result.facts["excluded"] == sum(label not in gallery_labels for label in labels)


ties_modes = st.sampled_from(("pessimistic", "optimistic"))
tolerances = st.sampled_from((1e-6, 1e-3, 0.0))


@settings(max_examples=60)
@given(data=sets(), ties=ties_modes, tolerance=tolerances)
def test_leave_one_out_is_the_full_ranking(data, ties, tolerance, reference):
    check_leave_one_out(data, ties, tolerance, reference)


@settings(max_examples=60)
@given(query=sets(12), item=sets(16), ties=ties_modes)
def test_query_gallery_is_the_full_ranking(query, item, ties, reference):
    check_query_gallery(query, item, ties, reference)


@pytest.mark.long
@settings(max_examples=600, derandomize=False)
@given(data=sets(), ties=ties_modes, tolerance=tolerances)
def test_leave_one_out_is_the_full_ranking_on_new_cases(data, ties, tolerance, reference):
    check_leave_one_out(data, ties, tolerance, reference)


@pytest.mark.long
@settings(max_examples=400, derandomize=False)
@given(query=sets(12), item=sets(16), ties=ties_modes)
def test_query_gallery_is_the_full_ranking_on_new_cases(query, item, ties, reference):
    check_query_gallery(query, item, ties, reference)


@settings(max_examples=40)
@given(data=sets(7))
def test_expected_ties_are_the_mean_over_all_orders(data, reference):
    vectors, labels = data
    if has_pairs(labels):
        same(evaluate(vectors, labels, ties="expected"), reference(vectors, labels, ties="expected"))


@settings(max_examples=30)
@given(data=sets(14), seed=st.integers(0, 10**6))
def test_ignored_items_are_not_seen(data, seed, reference):
    vectors, labels = data
    draw = np.random.default_rng(seed)
    groups = draw.integers(0, 3, len(labels))
    mask = draw.random((len(labels), len(labels))) < 0.3
    for ignore, hidden in ((groups, groups[:, None] == groups), (mask, mask)):
        expected = reference(vectors, labels, ignored=hidden)
        if not np.isnan(expected["map"]).all():
            same(evaluate(vectors, labels, ignore=ignore), expected)


def test_ignored_groups_with_a_gallery(reference):
    draw = np.random.default_rng(5)
    queries, gallery = draw.standard_normal((20, 3)).astype("f"), draw.standard_normal((40, 3)).astype("f")
    labels, items = draw.integers(0, 5, 20), draw.integers(0, 5, 40)
    cameras, others = draw.integers(0, 3, 20), draw.integers(0, 3, 40)
    result = evaluate(queries, labels, gallery=gallery, gallery_labels=items, ignore=(cameras, others))
    same(result, reference(queries, labels, gallery, items, ignored=cameras[:, None] == others))
    # re-identification: only images of the same identity by the same camera are junk
    left, right = list(zip(labels, cameras, strict=True)), list(zip(items, others, strict=True))
    junk = (labels[:, None] == items) & (cameras[:, None] == others)
    result = evaluate(queries, labels, gallery=gallery, gallery_labels=items, ignore=(left, right))
    same(result, reference(queries, labels, gallery, items, ignored=junk))


def crowded(rows=300, width=16, classes=40):
    """Long-tailed classes, and a third of the rows repeated under another label."""
    draw = np.random.default_rng(1)
    labels = np.minimum(draw.geometric(0.06, rows), classes)
    vectors = (draw.standard_normal((classes + 1, width))[labels] + draw.standard_normal((rows, width))).astype(
        np.float32
    )
    repeated = rows // 3
    vectors[-repeated:] = vectors[:repeated] * 2  # of the same direction to the last bit
    return vectors, labels


@pytest.mark.parametrize("few", [0, 3, 24])
@pytest.mark.parametrize("near", [0, 2**16])
@pytest.mark.parametrize(("rows", "entries", "budget"), [(7, 60, 200), (64, 500, 900), (1024, 2**20, 2**20)])
def test_no_result_depends_on_blocks_or_method(reference, few, near, rows, entries, budget):
    area = max(rows, 8) * max(rows, 1024)
    result = evaluate(*crowded(), blocks=Blocks(rows, area, entries, budget=budget, few=few, near=near))
    same(result, crowded_reference(reference))
    assert result.facts["tied"] > 50


def crowded_reference(reference, cache={}):  # noqa: B006
    if not cache:
        cache.update(reference(*crowded()))
    return cache


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_no_result_depends_on_threads(reference, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        same(evaluate(*crowded()), crowded_reference(reference))
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


def test_a_collapsed_embedding_scores_near_zero(reference):
    draw = np.random.default_rng(0)
    labels = np.arange(200) % 20
    for spread in (0, 1e-7, 1e-5, 1e-3):
        vectors = (1 + spread * draw.standard_normal((200, 8))).astype(np.float32)
        result = evaluate(vectors, labels)
        same(result, reference(vectors, labels))
        if spread < 1e-5:  # the rounding of float32 itself: cosines differ by less than 1e-12
            assert result["recall@1"] == 0
            assert result.facts["tied"] == 200
            told = "200 queries have ties between relevant and other items, resolved as pessimistic"
            assert result.warnings == [told]
            assert told in str(result)
    assert evaluate(np.ones((200, 8), "f"), labels, ties="optimistic")["map@r"] == 1
    expected = evaluate(np.ones((200, 8), "f"), labels, ties="expected")
    assert expected["recall@1"] == pytest.approx(9 / 199, abs=EXACT)


def test_float32_scores_sorted_give_the_same(reference):
    vectors, labels = crowded(200, 12, 20)
    same(
        evaluate(vectors, labels, tie_tolerance=1e-5), reference(vectors, labels, precision=np.float32, tolerance=1e-5)
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tight_embeddings_are_ranked_as_float64_ranks_them(reference, dtype):
    """Classes around centres that are 1e-3 apart: cosines differ by 4e-8, which float32 does not resolve."""
    draw = np.random.default_rng(4)
    labels = np.arange(120) % 12
    centres = draw.standard_normal((12, 8))
    vectors = (draw.standard_normal(8) + 1e-3 * (centres[labels] + 0.3 * draw.standard_normal((120, 8)))).astype(dtype)
    result = evaluate(vectors, labels)
    same(result, reference(vectors, labels))
    assert result["recall@1"] > 0.8
    assert result.warnings == []
    assert evaluate(vectors, labels, tie_tolerance=1e-5)["recall@1"] == 0


@pytest.mark.parametrize("ties", ["pessimistic", "optimistic", "expected"])
@pytest.mark.parametrize("compiled", [True, False])
def test_few_ranks_are_those_of_all(ties, compiled):
    """Classes of a hundred, with ties and ignored items: what looks at few ranks alone gets the same values."""
    how = {"ties": ties, "blocks": Blocks(wide=64, entries=2000, compiled=compiled)}
    draw = np.random.default_rng(6)
    vectors, labels = draw.integers(-2, 3, (300, 3)).astype("f"), draw.integers(0, 3, 300)
    whole = evaluate(vectors, labels, **how)
    for supervision in ({"relevance": labels[:, None] == labels}, {}):
        listed = evaluate(vectors, labels, **supervision, metrics="recall@1 mrr", **how)
        for name in listed.per_query:
            np.testing.assert_array_equal(listed.per_query[name], whole.per_query[name], err_msg=name)
    groups = np.arange(300) % 5
    for hidden, all_ranks in ((None, whole), (groups, evaluate(vectors, labels, ignore=groups, **how))):
        for names in (["recall@1"], ["precision@1", "ndcg@10", "f1_retrieval@4"], ["mrr"], ["map@1000", "recall@2"]):
            some = evaluate(vectors, labels, ignore=hidden, metrics=names, **how)
            for name in names:
                np.testing.assert_array_equal(some.per_query[name], all_ranks.per_query[name], err_msg=name)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("geometry", ["ball", "none"])
def test_other_geometries_rank_by_euclidean_distance(geometry, compiled):
    draw = np.random.default_rng(3)
    vectors, labels = draw.standard_normal((80, 5)) * 1e25, np.arange(80) % 9
    if geometry == "ball":
        vectors = vectors / 1e25
    vectors = vectors.astype(np.float32)
    placed = vectors.astype(np.float64)
    placed = placed / (np.maximum(1, np.linalg.norm(placed, axis=1, keepdims=True)) if geometry == "ball" else 1e25)
    distances = ((placed[:, None] - placed) ** 2).sum(2)
    firsts = [
        np.flatnonzero((labels == labels[row])[np.argsort(distances[row], kind="stable")])[1]
        for row in range(len(labels))
    ]
    alike = labels[:, None] == labels
    for how in ({"labels": labels}, {"relevance": alike}):  # by class, and listed one by one
        result = evaluate(vectors, **how, normalise=geometry, blocks=Blocks(compiled=compiled))
        np.testing.assert_allclose(result.per_query["mrr"], 1 / np.array(firsts), atol=EXACT)


def test_half_precision_double_and_torch_agree():
    vectors, labels = crowded(100)
    half = torch.tensor(vectors).half()
    for other in (half.float(), half.double(), half.float().numpy(), half.float().requires_grad_()):
        assert dict(evaluate(other, torch.tensor(labels[:100]))) == dict(evaluate(half, labels[:100]))


@pytest.mark.parametrize("near", [0, 2**16])
def test_torch_operations_count_the_same(reference, near):
    in_torch = partial(evaluate, blocks=Blocks(rows=64, near=near, compiled=False))
    same(in_torch(*crowded()), crowded_reference(reference))
    draw = np.random.default_rng(2)
    vectors, labels, groups = draw.standard_normal((50, 4)).astype("f"), np.arange(50) % 7, np.arange(50) % 3
    same(in_torch(vectors, labels, ignore=groups), reference(vectors, labels, ignored=groups[:, None] == groups))
    result = in_torch(vectors[:20], labels[:20], gallery=vectors[20:], gallery_labels=labels[20:])
    same(result, reference(vectors[:20], labels[:20], vectors[20:], labels[20:]))


def test_inference_mode_changes_nothing():
    vectors, labels = torch.randn(60, 4, generator=torch.Generator().manual_seed(0)), torch.arange(60) % 12
    metrics = ["recall@1", "map@r", "nmi", "intra", "roc"]
    outside = evaluate(vectors, labels, metrics=metrics)
    with torch.inference_mode():  # Lightning validates in it
        inside = evaluate(vectors + 0, labels + 0, metrics=metrics)
    assert dict(inside) == dict(outside)
    assert inside.confused(3) == outside.confused(3)


def test_progress_reaches_its_total():
    calls = []
    evaluate(*crowded(), progress=lambda done, total: calls.append((done, total)))
    assert calls[-1][0] == calls[-1][1] == len(calls)


@pytest.mark.parametrize("largest", [1, 3, 10, 3000])
@pytest.mark.parametrize("shift", [1.0, 2.0**100, 2.0**-100, 2.0**1000])
def test_equal_distances_of_whole_numbers_are_ties_even_without_a_tolerance(largest, shift):
    """No division on the way to the scores may round: every pessimistic first rank is that of integer arithmetic."""
    draw = np.random.default_rng(largest)
    points, labels = draw.integers(-largest, largest + 1, (70, 3)), np.arange(70) // 2
    squares = ((points[:, None] - points[None]) ** 2).sum(2)
    relevant = squares[np.arange(70), np.arange(70) ^ 1]
    other = labels[:, None] != labels
    worse = (squares <= relevant[:, None]) & other
    result = evaluate(points * shift, labels, normalise="none", tie_tolerance=0, metrics=["mrr"])
    np.testing.assert_array_equal(result.per_query["mrr"], 1 / (1 + worse.sum(1)))
    assert result.facts["tied"] == int(((squares == relevant[:, None]) & other).any(1).sum())


def test_the_tolerance_is_measured_in_squares_of_the_longest_vector():
    """−‖a − b‖²/2 of the query and its two neighbours differ by just less, or just more, than the tolerance."""
    for share, tied in ((0.9, 1), (1.1, 0)):
        places = np.array([[3.0], [0.0], [1.0], [-np.sqrt(1 + 2 * share * 0.01 * 9)]])
        for order in ([0, 1, 2, 3], [3, 2, 1, 0]):
            labels = np.array([2, 0, 0, 1])[order]
            result = evaluate(places[order], labels, normalise="none", tie_tolerance=0.01, metrics=["mrr"])
            assert result.facts["tied"] >= tied
            assert result.per_query["mrr"][order.index(1)] == (0.5 if tied else 1.0)


def test_the_ball_is_not_the_sphere():
    """Inside the ball lengths count; beyond it they do not."""
    vectors, labels = np.array([[0.1, 0.0], [0.0, 0.1], [0.9, 0.0], [90.0, 0.0]]), [0, 0, 1, 1]
    inside = evaluate(vectors, labels, normalise="ball", metrics=["mrr"]).per_query["mrr"]
    np.testing.assert_array_equal(inside, [1, 1, 1, 1])
    on_sphere = evaluate(vectors, labels, normalise="sphere", metrics=["mrr"]).per_query["mrr"]
    assert on_sphere[0] < 1
    raw = evaluate(vectors, labels, normalise="none", metrics=["mrr"]).per_query["mrr"]
    assert raw[2] < 1


def test_eq_30_divides_by_a_thousand_and_is_measured_only_when_named():
    labels = torch.arange(40) // 4
    vectors = torch.randn(40, 8, generator=torch.Generator().manual_seed(0))
    result = evaluate(vectors, labels, metrics=["precision@1000_eq30", "precision@1000_doc"])
    assert result["precision@1000_eq30"] == pytest.approx(3 / 1000)
    assert result["precision@1000_doc"] == pytest.approx(3 / 39)
    assert "precision@1000_eq30" not in ranking_names()
