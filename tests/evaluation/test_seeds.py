"""Means and intervals over seeds and queries."""

import numpy as np
import pytest
from scipy import stats

from lookalike.errors import UserError
from lookalike.evaluation import Result
from lookalike.evaluation.statistics.bootstrap import interval
from lookalike.evaluation.statistics.seeds import averaged, difference, difference_by_seed, quantile, spread


def results(values: np.ndarray, labels=None) -> list[Result]:
    """One result per row of values per query."""
    return [Result({"map": float(row.mean())}, {"map": row}, list(labels or range(len(row))), {}) for row in values]


@pytest.mark.parametrize("freedom", [1, 2, 4, 9, 30, 31, 60, 200])
def test_quantiles_are_students(freedom):
    assert quantile(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), abs=5e-3)


def test_the_interval_over_seeds_is_students():
    values = np.random.default_rng(0).random((4, 50))
    over, means = spread(results(values), "map"), values.mean(1)
    assert over.std == pytest.approx(means.std(ddof=1))
    low, high = stats.t.interval(0.95, 3, means.mean(), stats.sem(means))
    assert over.over_seeds == pytest.approx((low, high), abs=1e-3)


def test_the_same_queries_are_not_counted_once_per_seed():
    """Ten seeds with the same values for 40 queries leave the uncertainty over queries as it is."""
    row = np.random.default_rng(0).random(40)
    one, ten = spread(results(row[None]), "map"), spread(results(np.tile(row, (10, 1))), "map")
    assert one.over_queries == pytest.approx(ten.over_queries)
    assert ten.std == pytest.approx(0)
    assert one.std is None
    assert one.over_seeds is None


def test_other_queries_under_every_seed_are_more_queries():
    values = np.random.default_rng(0).random((4, 40))
    apart = [results(row[None], [f"{seed} {place}" for place in range(40)])[0] for seed, row in enumerate(values)]
    narrow, wide = spread(apart, "map").over_queries, spread(apart[:1], "map").over_queries
    assert narrow[1] - narrow[0] < 0.7 * (wide[1] - wide[0])


def test_differences_are_taken_in_pairs():
    generator = np.random.default_rng(0)
    base = generator.random((3, 200))
    better = base + 0.02 + 0.01 * generator.random((3, 200))
    gap = difference(results(better), results(base), "map")
    assert gap.mean == pytest.approx((better - base).mean())
    assert gap.over_queries == pytest.approx(interval((better - base).mean(0)))
    assert gap.clear  # although each of the two varies far more
    assert not difference(results(base), results(base), "map").clear
    with pytest.raises(UserError, match="same seeds"):
        difference(results(base), results(base[:2]), "map")


def test_the_mean_of_models_is_taken_query_by_query():
    values = np.array([[0.0, 1.0], [1.0, 1.0]])
    mean = averaged(results(values))
    assert mean["map"] == 0.75
    assert mean.per_query["map"].tolist() == [0.5, 1.0]


def test_methods_are_paired_by_the_seeds_they_share():
    values = np.random.default_rng(0).random((4, 30))
    each = results(values)
    mine, base = {0: each[0], 1: each[1]}, {1: each[2], 2: each[3]}
    assert difference_by_seed(mine, base, "map") == difference([each[1]], [each[2]], "map")
    assert difference_by_seed({0: each[0]}, base, "map") is None
    assert difference_by_seed({0: each[0]}, base, "map", in_order=True) == difference([each[0]], [each[2]], "map")
    assert difference_by_seed(mine, base, "recall@1", in_order=True) is None  # nobody measured it


def test_other_queries_are_not_paired():
    values = np.random.default_rng(0).random((2, 20))
    gap = difference(results(values[:1]), results(values[1:], [f"other {place}" for place in range(20)]), "map")
    assert gap.mean == pytest.approx(values[0].mean() - values[1].mean())
    assert gap.over_queries is None
    assert not gap.clear


def test_as_json_what_is_not_known_is_left_out():
    one, two = (spread(results(np.full((seeds, 4), 0.5)), "map").as_json() for seeds in (1, 2))
    assert one == {"mean": 0.5, "over_queries": (0.5, 0.5), "seeds": 1}
    assert set(two) == {"mean", "std", "over_seeds", "over_queries", "seeds"}
