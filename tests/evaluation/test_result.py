"""Results: mapping, breakdowns, intervals, saving, comparing, showing."""

import json

import numpy as np
import pytest
from scipy import stats

from lookalike.errors import UserError
from lookalike.evaluation import Result, compare, evaluate
from lookalike.evaluation.statistics.bootstrap import interval


def measured(noise=1.0, seed=0, labels=None):
    draw = np.random.default_rng(0)
    codes = np.arange(120) % 11
    vectors = draw.standard_normal((11, 6))[codes] + noise * np.random.default_rng(seed).standard_normal((120, 6))
    return evaluate(
        vectors.astype("f"), codes if labels is None else labels, categories=[f"c{code % 3}" for code in codes]
    )


def test_it_is_a_mapping_of_means_of_per_query_values():
    result = measured()
    assert len(result) == len(list(result)) == 45
    for name, value in result.items():
        assert 0 <= value <= 1
        assert value == pytest.approx(result.per_query[name].mean(), abs=1e-15)
    with pytest.raises(KeyError, match="did you mean 'recall@1'"):
        result["recal@1"]


def test_breakdowns_add_up():
    result = measured()
    for parts in (result.by_class("map@r"), result.by_category("map@r")):
        total = sum(part.value * part.queries for part in parts.values()) / sum(part.queries for part in parts.values())
        assert total == pytest.approx(result["map@r"], abs=1e-12)
    assert set(result.by_category("map@r")) == {"c0", "c1", "c2"}
    worst = result.worst("map@r", 5)
    assert [value for *_, value in worst] == sorted(result.per_query["map@r"])[:5]


def test_confused_pairs_are_the_nearest_wrong_classes():
    vectors = np.eye(6, dtype="f")[[0, 1, 0, 2, 3, 3, 3, 4]] + 0.01 * np.arange(8, dtype="f")[:, None]
    labels = ["ant", "ant", "bee", "bee", "cat", "cat", "dog", "dog"]
    result = evaluate(vectors, labels)
    confusions = {(truth, other): number for truth, other, number in result.confused(10)}
    assert sum(confusions.values()) == int((result.per_query["recall@1"] == 0).sum())
    assert confusions[("ant", "bee")] >= 1
    assert confusions[("dog", "cat")] >= 1


def test_intervals_hold_the_mean_and_shrink():
    result = measured()
    low, high = result.interval("map@r")
    assert low < result["map@r"] < high
    wide = result.interval("map@r", level=0.99)
    assert wide[0] < low < high < wide[1]
    by_class = result.interval("map@r", over="classes")
    assert by_class[1] - by_class[0] > high - low  # queries of a class go together
    assert result.interval("map@r", seed=1) != (low, high)
    assert result.interval("map@r") == (low, high)


def test_the_interval_covers_as_often_as_it_says():
    draw = np.random.default_rng(0)
    inside = 0
    for seed in range(200):
        low, high = interval(draw.random(60), level=0.9, resamples=200, seed=seed)
        inside += low <= 0.5 <= high
    assert 160 <= inside <= 196


def test_saving_loses_nothing():
    labels = [("a", code % 11) for code in range(120)]
    result = measured(labels=labels)
    result.confused()
    back = Result.from_json(result.to_json())
    assert dict(back) == dict(result)
    assert back.labels == labels
    assert back.categories == result.categories
    assert back.facts["tied"] == result.facts["tied"]
    assert back.confused() == result.confused()
    for name, values in result.per_query.items():
        assert back.per_query[name].tobytes() == values.tobytes()
    assert json.loads(result.to_json())["metrics"]["recall@1"] == result["recall@1"]
    content = json.loads(result.to_json())
    without = json.dumps({name: value for name, value in content.items() if name != "labels"})
    damaged = [json.dumps(content | {"per_query": value}) for value in (3, {"recall@1": "eJw="}, {"recall@1": 7})]
    for wrong in ("{}", "[1]", "nonsense", "[" * 100_000, without, *damaged):
        with pytest.raises(UserError, match="not a saved result"):
            Result.from_json(wrong)


def test_lonely_queries_are_nan_and_counted():
    result = evaluate(np.eye(5, dtype="f") + 0.1, ["a", "a", "b", "b", "c"])
    assert np.isnan(result.per_query["map"]).tolist() == [False] * 4 + [True]
    assert result.facts["excluded"] == 1
    assert "1 queries have no relevant item" in str(result)
    back = Result.from_json(result.to_json())
    assert np.isnan(back.per_query["map"][4])


def test_confusions_leave_out_what_is_ignored():
    """The nearest item of another class comes from the query's own group."""
    vectors = np.array([[1, 0, 0], [0, 1, 0], [0.99, 0.1, 0], [0.9, 0.3, 0.1], [0, 0, 1]], np.float32)
    labels, groups = ["ant", "ant", "bee", "cat", "dog"], [0, 1, 0, 2, 3]
    assert evaluate(vectors, labels).confused()[0][1] == "bee"
    assert evaluate(vectors, labels, ignore=groups).confused()[0][1] == "cat"
    hidden = np.zeros((5, 5), bool)
    hidden[0, 2] = True
    assert evaluate(vectors, labels, ignore=hidden).confused()[0] == ("ant", "cat", 2)


def test_the_table_has_a_row_per_family_and_a_column_per_k():
    metrics = {"recall@1": 0.5, "recall@10": 0.75, "ndcg@10": 0.25, "map": 0.125, "rho": 0.5, "tar@0.01": 1.0}
    lines = str(Result(metrics, {}, [], {"queries": 1234, "gallery": 5, "classes": 6})).splitlines()
    assert lines == [
        "1,234 queries, 5 in the gallery, 6 classes",
        "",
        "            @1     @10",
        "recall  0.5000  0.7500",
        "ndcg            0.2500",
        "",
        "map       0.1250",
        "rho       0.5000",
        "tar@0.01  1.0000",
    ]


def test_the_table_shows_fractions_and_ties():
    text = str(evaluate(np.ones((4, 2), "f"), [0, 0, 1, 1], metrics="recall@1,2 map intra"))
    assert "4 queries have ties" in text
    assert "@2" in text
    assert "0.0000" in text
    assert "%" not in text


def test_compare_is_paired():
    results = {"old": measured(1.0), "same": measured(1.0), "worse": measured(1.6, seed=0)}
    comparison = compare(results, ["map@r"])
    same, worse = comparison.differences[1:]
    assert (same.difference, same.low, same.high, same.clear) == (0, 0, 0, False)
    assert worse.difference == pytest.approx(results["worse"]["map@r"] - results["old"]["map@r"], abs=1e-12)
    assert worse.low < worse.difference < worse.high < 0
    assert worse.clear
    rows = [line.split() for line in str(comparison).splitlines()]
    assert rows[1] == ["map@r", "old", f"{results['old']['map@r']:.4f}"]
    span = [f"[{worse.low:+.4f},", f"{worse.high:+.4f}]"]
    assert rows[3] == ["map@r", "worse", f"{worse.value:.4f}", f"{worse.difference:+.4f}", *span, "*"]
    by_class = compare(results, ["map@r"], over="classes").differences[2]
    assert by_class.difference == worse.difference
    assert (by_class.low, by_class.high) == interval(
        results["worse"].per_query["map@r"] - results["old"].per_query["map@r"], results["old"].labels
    )
    with pytest.raises(UserError, match="at least two"):
        compare({"old": results["old"]})
    other = evaluate(np.eye(4, dtype="f"), [0, 0, 1, 1])
    with pytest.raises(UserError, match="different queries"):
        compare({"old": results["old"], "other": other}, ["map@r"])


def test_the_interval_ends_at_the_quantiles_of_the_resampled_means():
    """Against the binomial distribution: of n zeros and ones the resampled sum is one, and both its ends count."""
    count, ones = 400, 120
    values = np.repeat([1.0, 0.0], [ones, count - ones])
    for level in (0.5, 0.8, 0.95):
        low, high = interval(values, level=level, resamples=20_000, seed=3)
        for end, share in ((low, (1 - level) / 2), (high, (1 + level) / 2)):
            exact = stats.binom.ppf(share, count, ones / count) / count
            assert abs(end - exact) <= 1.5 / count
