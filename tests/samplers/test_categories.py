"""Category batches [math C.8]: which categories meet, how often, and which of their images."""

from collections import Counter
from itertools import combinations, pairwise
from math import ceil, comb

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookalike import samplers
from lookalike.errors import UserError

seeds = st.integers(0, 2**31)


@st.composite
def categorised(draw, known=(1, 5), unknown=(0, 0)):
    """Labels and categories: every class in one category, any class sizes, any order."""
    categories = draw(st.integers(*known))
    numbers = list(range(categories)) + [-1] * draw(st.integers(*unknown))
    rows = []
    for number in numbers:
        for _ in range(draw(st.integers(1, 4))):
            name = len({label for label, _ in rows})
            rows += [(name, number)] * draw(st.integers(1, 6))
    rows = draw(st.permutations(rows))
    labels, numbers = zip(*rows, strict=True)
    return torch.tensor(labels), torch.tensor(numbers)


@given(categorised(), st.data(), st.integers(1, 6), st.integers(1, 3), seeds)
def test_every_combination_of_categories_comes_up_equally_often(data, draw, part, repeats, seed):
    labels, categories = data
    known = len(categories.unique())
    together = draw.draw(st.integers(1, min(3, known)))
    sampler = samplers.CategoryPairs(labels, categories, part * together, together, repeats, seed=seed)
    batches = list(sampler)
    assert len(batches) == len(sampler) == comb(known, together) * repeats
    met = Counter()
    for batch in batches:
        numbers = categories[batch].view(together, part)
        assert (numbers == numbers[:, :1]).all()
        met[tuple(sorted(numbers[:, 0].tolist()))] += 1
    assert met == dict.fromkeys(combinations(range(known), together), repeats)


@given(categorised(unknown=(1, 2)), st.integers(1, 6), seeds)
def test_partly_labelled_data_pairs_every_category_with_the_rest(data, half, seed):
    labels, categories = data
    sampler = samplers.CategoryPairs(labels, categories, 2 * half, seed=seed)
    batches = list(sampler)
    sizes = Counter(categories.tolist())
    expected = {number: ceil(2 * size / (2 * half)) for number, size in sizes.items() if number >= 0}
    assert len(batches) == len(sampler) == sum(expected.values())
    met = Counter()
    for batch in batches:
        left, right = categories[batch].view(2, half)
        assert len(left.unique()) == 1
        assert (right == -1).all()
        met[int(left[0])] += 1
    assert met == expected
    for number in expected:
        assert {image for batch in batches for image in batch} >= set((categories == number).nonzero()[:, 0].tolist())


@given(categorised(unknown=(0, 1)), st.integers(1, 6), seeds)
def test_a_category_gives_its_images_in_a_circle_class_by_class(data, half, seed):
    labels, categories = data
    if len(categories.unique()) < 2:
        return
    stream = {number: [] for number in categories.unique().tolist()}
    for batch in samplers.CategoryPairs(labels, categories, 2 * half, seed=seed):
        for image in batch:
            stream[int(categories[image])].append(image)
    for number, images in stream.items():
        size = int((categories == number).sum())
        assert all(image == images[place % size] for place, image in enumerate(images))
        circle = images[:size]
        assert len(set(circle)) == len(circle)
        if len(circle) == size:
            runs = labels[circle].unique_consecutive().tolist()
            assert len(runs) == len(set(runs))


def test_the_published_epochs():
    for categories, repeats, batches in ((12, 5, 330), (23, 2, 506)):
        numbers = torch.arange(categories * 100) % categories
        sampler = samplers.CategoryPairs(torch.arange(len(numbers)), numbers, 32, batches_per_combination=repeats)
        assert len(sampler) == batches
    assert len(samplers.build("category_pairs", "inshop", labels=numbers, categories=numbers, batch_size=32)) == 506


def test_the_batches_of_partly_labelled_data_as_printed_are_rounded_once():
    """Categories of 3, 3, 3 and 4 images in halves of 2: 13 / 2 batches in all, not 2 for each."""
    categories = torch.tensor([0] * 3 + [1] * 3 + [2] * 3 + [3] * 4 + [-1] * 9)
    labels = torch.arange(len(categories))
    assert len(samplers.CategoryPairs(labels, categories, batch_size=4)) == 8
    printed = samplers.build("category_pairs", "vehicle_id", labels=labels, categories=categories, batch_size=4)
    counts = []
    for _ in range(8):
        batches = [categories[batch].tolist() for batch in printed]
        assert all(batch.count(-1) == 2 for batch in batches)
        counts.append([sum(kind in batch for batch in batches) for kind in range(4)])
    assert {sum(count) for count in counts} == {len(printed)} == {7}
    assert all(1 <= number <= 2 for count in counts for number in count)


def test_batches_of_one_combination_follow_each_other():
    categories = torch.arange(60) % 4
    numbers = [frozenset(categories[batch].tolist()) for batch in samplers.CategoryPairs(categories, categories, 4)]
    assert sum(before != after for before, after in pairwise(numbers)) == comb(4, 2) - 1


def test_an_epoch_can_be_shorter_or_longer_than_all_combinations():
    categories = torch.arange(60) % 4
    for batches in (3, 100):
        sampler = samplers.CategoryPairs(categories, categories, 4, batches=batches)
        assert len(list(sampler)) == batches


def test_too_many_combinations_need_a_number_of_batches():
    categories = torch.arange(3000) % 1500
    with pytest.raises(
        UserError,
        match="1500 categories have 1,124,250 combinations of 2: set batches, the number",
    ):
        samplers.CategoryPairs(categories, categories, 4)
    for batch in samplers.CategoryPairs(categories, categories, 4, batches=20):
        assert len(categories[batch].unique()) == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 5}, "2 categories do not share a batch of 5 evenly"),
        ({"batch_size": 8, "categories_per_batch": 4}, "a batch mixes 4 categories, the data has 3"),
        ({"batch_size": 6, "batches_per_combination": 0}, "batches_per_combination must be positive, not 0"),
        ({"batch_size": 6, "batches": 0}, "an epoch has at least one batch, not 0"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    numbers = torch.arange(30) % 3
    with pytest.raises(UserError, match=message):
        samplers.CategoryPairs(numbers, numbers, **settings)


def test_impossible_settings_of_partly_labelled_data_are_refused():
    numbers = torch.tensor([-1, -1, 0, 0])
    with pytest.raises(UserError, match="categories_per_batch must be 2, not 1"):
        samplers.CategoryPairs(numbers, numbers, 4, categories_per_batch=1)
    with pytest.raises(UserError, match="every category sets its number of batches"):
        samplers.CategoryPairs(numbers, numbers, 4, batches=7)
    with pytest.raises(UserError, match="no image has a category"):
        samplers.CategoryPairs(numbers, torch.full((4,), -1), 4)


@pytest.mark.plain
def test_categories_must_fit_the_labels():
    with pytest.raises(UserError, match="3 categories for 4 labels"):
        samplers.CategoryPairs(torch.arange(4), torch.arange(3), 4)


@pytest.mark.parametrize("name", ["category_random", "category_pairs"])
def test_whole_classes_are_never_split_for_good(name):
    """With `whole`, each part of a batch is a run of classes of which at most the last is cut."""
    labels = torch.arange(60).repeat_interleave(torch.arange(60) % 4 + 1)
    categories, sizes = labels % 3, torch.bincount(labels)
    sampler = samplers.build(name, labels=labels, categories=categories, batch_size=20, whole=True, seed=3)
    parts = 2 if name == "category_pairs" else 1
    complete = set()
    for batch in sampler:
        for part in labels[torch.tensor(batch)].view(parts, -1):
            classes, counts = part.unique_consecutive(return_counts=True)
            assert (counts[:-1] == sizes[classes[:-1]]).all()
            complete |= set(classes[counts == sizes[classes]].tolist())
    assert len(complete) > 45  # a class that was cut has come again


@pytest.mark.parametrize("name", ["category_random", "category_pairs"])
def test_few_images_of_a_class_stand_together(name):
    labels = torch.arange(12).repeat_interleave(23)
    settings = {"labels": labels, "categories": labels % 3, "batch_size": 20, "per_class": 5, "seed": 1}
    batches = list(samplers.build(name, **settings, whole=True))
    runs = [labels[torch.tensor(batch)].unique_consecutive(return_counts=True)[1] for batch in batches]
    assert max(int(run.max()) for run in runs) <= 10  # two chunks of one class may follow each other
    assert sum(len(run) for run in runs) / len(runs) > 3
    with pytest.raises(UserError, match="per_class"):
        next(iter(samplers.build(name, **settings | {"per_class": 0})))
