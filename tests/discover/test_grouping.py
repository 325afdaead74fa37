"""Groups without labels: what merging promises at every level, against loops over all pairs."""

from functools import cache

import numpy as np
import pytest

from lookalike.discover.grouping import APART, hierarchy
from lookalike.discover.purity import Checked, draw_pairs, lower_bound
from lookalike.errors import UserError


def kinds(count=6, each=8, width=24, noise=0.25, seed=0):
    draw = np.random.default_rng(seed)
    centres = draw.normal(size=(count, width))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    vectors = np.repeat(centres, each, 0) + noise / np.sqrt(width) * draw.normal(size=(count * each, width))
    return vectors.astype(np.float32), np.repeat(np.arange(count), each)


def same_groups(one, other):
    return (
        len(set(zip(one.tolist(), other.tolist(), strict=True))) == len(set(one.tolist())) == len(set(other.tolist()))
    )


@pytest.mark.parametrize("geometry", ["sphere", "none"])
def test_clear_kinds_are_found_and_strangers_stay_apart(geometry):
    vectors, labels = kinds()
    strangers = np.random.default_rng(9).normal(size=(4, vectors.shape[1])).astype(np.float32)
    strangers /= np.linalg.norm(strangers, axis=1, keepdims=True)
    merged = hierarchy(np.concatenate([vectors, strangers]), geometry=geometry)
    found = merged.at(merged.suggested())
    assert same_groups(found.groups[: len(labels)], labels)
    assert (found.groups[len(labels) :] == APART).all()
    assert found.count == 6


@pytest.mark.parametrize("geometry", ["sphere", "none"])
def test_a_level_is_the_lowest_mean_of_what_it_merged(geometry):
    """With all pairs in the graph it is average link: the next merge of any two groups would be below the level."""
    vectors, _ = kinds(3, 6, noise=1.0)
    merged = hierarchy(vectors, geometry=geometry)  # 18 items, of which all others are neighbours
    unit = vectors.astype(np.float64)
    if geometry == "sphere":
        unit /= np.linalg.norm(unit, axis=1, keepdims=True)
        pairs = unit @ unit.T
    else:
        pairs = -np.square(unit[:, None] - unit).sum(2) / 2
    for height in merged.heights[3:14:3]:
        groups = merged.at(float(height), least=1).groups
        means = [
            pairs[np.ix_(groups == one, groups == other)].mean() for one in set(groups) for other in set(groups) - {one}
        ]
        assert max(means) < height
        assert max(means) == pytest.approx(merged.heights[merged.heights < height][0], abs=1e-5)


def test_levels_are_nested_and_the_same_twice():
    vectors, _ = kinds(noise=1.2)
    merged, again = hierarchy(vectors), hierarchy(vectors)
    coarse, fine = (merged.at(merged.level_of(level), least=1).groups for level in (0.3, 0.8))
    assert (
        len(set(zip(coarse.tolist(), fine.tolist(), strict=True)))
        == len(set(fine.tolist()))
        > len(set(coarse.tolist()))
    )
    assert (merged.heights == again.heights).all()
    assert (merged.at(merged.suggested()).groups == again.at(again.suggested()).groups).all()


def test_examples_set_the_finest_level_that_joins_them():
    vectors, _ = kinds(noise=1.2)
    merged = hierarchy(vectors)
    level = merged.level_of_examples([0, 3, 5])
    together = merged.at(level, least=1).groups[[0, 3, 5]]
    assert len(set(together.tolist())) == 1
    apart = merged.at(float(np.nextafter(level, 2)), least=1).groups[[0, 3, 5]]
    assert len(set(apart.tolist())) > 1
    with pytest.raises(UserError, match="two different examples"):
        merged.level_of_examples([4, 4])


def test_known_classes_stay_whole_and_apart_while_others_join_them():
    vectors, labels = kinds(4, 8)
    known = np.where((labels < 2) & (np.arange(len(labels)) % 2 == 0), labels, -1)
    known[labels == 3] = -1
    known[1] = 1  # of the first kind, with the label of the second: a known class keeps what it was given
    found = hierarchy(vectors, known).at(0.5)
    one, two = found.groups[0], found.groups[8]
    assert one != two
    assert found.groups[1] == two
    assert (found.groups[2:8] == one).all()
    assert (found.groups[8:16] == two).all()
    split = np.where(labels == 0, np.arange(len(labels)) % 2, -1)  # two classes of one kind, to the eye
    assert len(set(hierarchy(vectors, split).at(0.5).groups[:8].tolist())) == 2


def test_too_few_photos_are_refused():
    with pytest.raises(UserError, match="at least 3 photos"):
        hierarchy(np.eye(2, dtype=np.float32))


def test_pairs_are_of_one_group_and_of_all_photos_in_groups():
    groups = np.array([0] * 5 + [1] * 2 + [APART] * 3 + [2])
    pairs = draw_pairs(groups, 4000)
    left, right = pairs.T
    assert (left != right).all()
    assert (groups[left] == groups[right]).all()
    counts = np.bincount(left, minlength=len(groups))
    assert (counts[7:] == 0).all()  # apart, and the only photo of its group
    assert counts[:7].min() > 4000 / 7 * 0.8
    assert len(draw_pairs(np.array([APART, 0]), 5)) == 0


@pytest.mark.parametrize(("right", "count"), [(30, 30), (25, 30), (1, 4), (57, 60), (990, 1000)])
def test_the_bound_is_the_rate_at_which_the_mean_likelihood_ratio_is_ten(right, count):
    from scipy.integrate import quad
    from scipy.stats import beta

    bound = lower_bound(right, count)
    ratio = lambda rate: (rate / bound) ** right * ((1 - rate) / (1 - bound)) ** (count - right)  # noqa: E731
    assert quad(ratio, bound, 1, points=[right / count])[0] / (1 - bound) == pytest.approx(10, rel=1e-6)
    assert bound < beta.ppf(0.1, right, count - right + 1)  # which holds at a number fixed beforehand


def test_the_bound_holds_for_whoever_stops_when_it_pleases_them():
    """A bound for a number of answers that is fixed beforehand fails in 92 of these draws."""
    bound, rate, draws = cache(lower_bound), 0.9, 400
    same = (np.random.default_rng(1).random((draws, 80)) < rate).cumsum(1)
    failed = [any(bound(int(row[count - 1]), count) > rate for count in range(20, 81)) for row in same]
    assert 0 < sum(failed) <= 0.1 * draws


def test_what_is_promised_holds_as_often_as_it_says():
    draw = np.random.default_rng(3)
    groups, classes = np.repeat(np.arange(40), 10), draw.integers(0, 3, 400)
    classes[draw.random(400) < 0.8] = 0  # in every group most are of one class
    true = np.mean([np.bincount(classes[groups == group]).max() / 10 for group in range(40)])
    kept = 0
    for seed in range(200):
        left, right = draw_pairs(groups, 60, seed).T
        kept += Checked(60, int((classes[left] == classes[right]).sum())).purity <= true
    assert kept >= 180
