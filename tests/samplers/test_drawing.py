"""Random choices: every outcome equally likely, nothing twice where it must not be."""

from itertools import permutations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookalike.samplers.drawing import distinct, distinct_if_possible, rounds, sample, uniform, weighted
from lookalike.samplers.grouping import Groups


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@given(st.lists(st.integers(4, 40), min_size=1, max_size=20), st.integers(1, 4), st.integers(0, 9))
def test_distinct_numbers_are_distinct_and_below_their_limit(limits, count, seed):
    numbers = distinct(torch.tensor(limits), count, seeded(seed))
    for limit, row in zip(limits, numbers.tolist(), strict=True):
        assert len(set(row)) == count
        assert 0 <= min(row) <= max(row) < limit


def test_every_ordered_choice_is_equally_likely(generator):
    numbers = distinct(torch.full((24_000,), 4), 3, generator)
    counts = dict.fromkeys(permutations(range(4), 3), 0)
    for row in numbers.tolist():
        counts[tuple(row)] += 1
    # 24 outcomes, 1000 expected each: chi-square with 23 degrees of freedom exceeds 50 once in a thousand runs.
    assert sum((count - 1000) ** 2 / 1000 for count in counts.values()) < 50


def test_weighted_places_come_in_the_order_of_a_race(generator):
    """Without replacement: the first by its weight, the second by its weight among the others."""
    weights = torch.tensor([[0.0, 1.0, 2.0, 5.0], [3.0, 1.0, 0.0, 0.0]])
    drawn = weighted(weights, torch.zeros(8000, dtype=torch.int64), 2, generator)
    for first, second in permutations((1, 2, 3), 2):
        own, other = float(weights[0, first]), float(weights[0, second])
        expected = 8000 * own / 8 * other / (8 - own)
        count = int(((drawn[:, 0] == first) & (drawn[:, 1] == second)).sum())
        assert abs(count - expected) < 4 * expected**0.5
    few = weighted(weights, torch.ones(8000, dtype=torch.int64), 3, generator)  # two places for three: again and again
    assert few.unique().tolist() == [0, 1]
    assert abs(float((few == 0).double().mean()) - 0.75) < 0.02


@given(st.integers(1, 40), st.data(), st.integers(0, 9))
def test_a_sample_is_of_different_numbers(limit, data, seed):
    count = data.draw(st.integers(0, limit))
    numbers = sample(limit, count, seeded(seed))
    assert len(numbers) == len(set(numbers)) == count
    assert all(0 <= number < limit for number in numbers)


@pytest.mark.parametrize(("limit", "count"), [(4, 3), (9, 2)])
def test_every_ordered_sample_is_equally_likely(limit, count, generator):
    outcomes = dict.fromkeys(permutations(range(limit), count), 0)
    for _ in range(100 * len(outcomes)):
        outcomes[tuple(sample(limit, count, generator))] += 1
    chi_square = sum((number - 100) ** 2 / 100 for number in outcomes.values())
    assert chi_square < len(outcomes) + 4 * (2 * len(outcomes)) ** 0.5


def test_uniform_reaches_every_number_and_no_other(generator):
    numbers = uniform(torch.full((5000,), 7), generator)
    assert numbers.unique().tolist() == list(range(7))
    assert uniform(torch.tensor([1]), generator).tolist() == [0]


def test_uniform_reaches_odd_numbers_beyond_single_precision(generator):
    numbers = uniform(torch.full((100,), 2**40), generator)
    assert (numbers % 2 == 1).any()


def test_a_row_with_too_few_numbers_repeats_them_and_the_others_do_not(generator):
    numbers = distinct_if_possible(torch.tensor([1, 5]), 4, generator)
    assert numbers[0].tolist() == [0, 0, 0, 0]
    assert len(set(numbers[1].tolist())) == 4


@given(st.integers(1, 9), st.integers(0, 40), st.integers(1, 12), st.integers(0, 9))
def test_rounds_use_every_item_once_per_round_and_none_twice_per_block(items, length, block, seed):
    queue = rounds(items, length, block, seeded(seed))
    assert len(queue) == length
    for start in range(0, length - items + 1, items):
        assert sorted(queue[start : start + items]) == list(range(items))
    if block <= items:
        for start in range(0, length, block):
            part = queue[start : start + block]
            assert len(set(part)) == len(part)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=30), st.integers(0, 9))
def test_groups_hold_the_images_of_each_label(labels, seed):
    groups = Groups.of(torch.tensor(labels))
    for version in (groups, groups.shuffled(seeded(seed))):
        for number, label in enumerate(sorted(set(labels))):
            members = version.members[version.starts[number] :][: version.sizes[number]].tolist()
            assert sorted(members) == [image for image, other in enumerate(labels) if other == label]


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=30), st.integers(0, 9))
def test_runs_keep_classes_together(labels, seed):
    runs = Groups.of(torch.tensor(labels)).in_runs(seeded(seed))
    assert sorted(runs.tolist()) == list(range(len(labels)))
    assert len(torch.tensor(labels)[runs].unique_consecutive()) == len(set(labels))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int64])
def test_labels_of_any_integer_type_group_alike(dtype):
    assert Groups.of(torch.tensor([3, 1, 3], dtype=dtype)).of_image.tolist() == [1, 0, 1]
