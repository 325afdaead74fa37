"""What each class sampler puts into a batch [math C.1, C.2, C.7, C.9–C.11], for class sizes of every kind."""

from collections import Counter
from math import ceil

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from lookalike import samplers
from lookalike.samplers.class_chunks import longest_period

seeds = st.integers(0, 2**31)


@st.composite
def labelled(draw, classes=(2, 9), sizes=(1, 9)):
    """Labels of a dataset: any names, any class sizes, any order."""
    counts = draw(st.lists(st.integers(*sizes), min_size=classes[0], max_size=classes[1]))
    names = draw(st.lists(st.integers(-50, 2**40), min_size=len(counts), max_size=len(counts), unique=True))
    labels = [name for name, count in zip(names, counts, strict=True) for _ in range(count)]
    return torch.tensor(draw(st.permutations(labels)))


def counts_of(labels, batch):
    return Counter(labels[batch].tolist())


def sizes_of(labels):
    return Counter(labels.tolist())


@given(labelled(), st.integers(1, 4), st.data(), seeds)
def test_class_balanced_draws_different_classes_and_different_images(labels, per_class, data, seed):
    sizes = sizes_of(labels)
    classes = data.draw(st.integers(1, len(sizes)))
    assume(classes * per_class <= len(labels))
    sampler = samplers.ClassBalanced(labels, classes * per_class, per_class, seed=seed)
    batches = list(sampler)
    assert len(batches) == len(sampler) == len(labels) // (classes * per_class)
    for batch in batches:
        counts = counts_of(labels, batch)
        assert len(counts) == classes
        assert set(counts.values()) == {per_class}
        for name in counts:
            if sizes[name] >= per_class:
                assert len({image for image in batch if labels[image] == name}) == per_class


def test_class_balanced_reaches_every_class_and_image_equally_often():
    labels = torch.arange(40) // 4
    sampler = samplers.ClassBalanced(labels, batch_size=6, per_class=2, batches=4000)
    counts = torch.tensor(list(sampler)).flatten().bincount(minlength=40)
    assert counts.min() > 500  # 600 expected, standard deviation about 24
    assert counts.max() < 700


def test_class_balanced_draws_images_by_the_chances_of_their_labels():
    labels = torch.arange(60) % 3
    chances = torch.where(torch.arange(60) < 30, 1.0, 0.25)
    batches = samplers.ClassBalanced(labels, batch_size=6, per_class=2, batches=4000, chances=chances)
    drawn = torch.tensor(list(batches))
    counts = torch.bincount(drawn.flatten(), minlength=60).double()
    assert bool((torch.bincount(labels[drawn].flatten()) == 8000).all())  # classes as ever
    assert all(len(set(batch)) == 6 for batch in drawn[:200].tolist())
    assert 3.3 < float(counts[:30].mean() / counts[30:].mean()) < 4.1


def test_roth_draws_classes_and_images_again():
    labels = torch.arange(12) // 3
    sampler = samplers.ClassBalanced(labels, batch_size=8, per_class=2, roth=True, batches=200)
    batches = list(sampler)
    assert all(count % 2 == 0 for batch in batches for count in counts_of(labels, batch).values())
    assert any(len(counts_of(labels, batch)) < 4 for batch in batches)
    assert any(batch[0] == batch[1] for batch in batches)


@given(labelled(classes=(1, 8)), st.integers(2, 12), seeds)
def test_class_random_has_a_positive_pair_of_different_images(labels, batch_size, seed):
    assume(max(sizes_of(labels).values()) > 1)
    assume(len(labels) >= batch_size)
    sampler = samplers.ClassRandom(labels, batch_size, seed=seed)
    batches = list(sampler)
    assert len(batches) == len(labels) // batch_size
    for batch in batches:
        assert len(batch) == batch_size
        last = batch[-1]
        assert any(labels[other] == labels[last] and other != last for other in batch[:-1])


def test_class_random_draws_classes_not_images_equally():
    labels = torch.tensor([0] * 2 + [1] * 98)
    images = torch.tensor([batch[:-1] for batch in samplers.ClassRandom(labels, batch_size=5, batches=1000)]).flatten()
    assert 0.45 < (labels[images] == 0).double().mean() < 0.55


def test_class_random_pairs_even_when_most_classes_have_one_image():
    labels = torch.tensor([0, 0, *range(1, 60)])
    for batch in samplers.ClassRandom(labels, batch_size=2, batches=300):
        assert sorted(batch) == [0, 1]


@given(labelled(), st.integers(1, 4), st.data(), seeds)
def test_class_queue_visits_every_class_equally_often_and_repeats_no_image_too_early(labels, per_class, data, seed):
    sizes = sizes_of(labels)
    classes = data.draw(st.integers(1, len(sizes)))
    sampler = samplers.ClassQueue(labels, classes * per_class, per_class, seed=seed)
    visits = ceil(len(labels) / (len(sizes) * per_class))
    batches = list(sampler)
    assert len(batches) == len(sampler) == visits * len(sizes) // classes
    stream = {name: [] for name in sizes}
    for batch in batches:
        counts = counts_of(labels, batch)
        assert len(counts) == classes
        assert set(counts.values()) == {per_class}
        for image in batch:
            stream[int(labels[image])].append(image)
    left_out = visits * len(sizes) - len(batches) * classes
    for name, images in stream.items():
        assert visits - left_out <= len(images) / per_class <= visits
        for start in range(0, len(images) - sizes[name] + 1, sizes[name]):
            assert len(set(images[start : start + sizes[name]])) == sizes[name]
        for start in range(0, len(images), per_class):
            visit = images[start : start + per_class]
            assert len(set(visit)) == min(per_class, sizes[name])


def test_class_queue_covers_every_image_of_equal_classes_in_one_epoch():
    labels = torch.arange(96) % 8
    batches = list(samplers.ClassQueue(labels, batch_size=16, per_class=4))
    assert sorted(image for batch in batches for image in batch) == list(range(96))


def test_class_queue_visits_all_classes_before_any_again():
    labels = torch.arange(80) % 10
    batches = list(samplers.ClassQueue(labels, batch_size=4, per_class=2))
    visits = [int(labels[image]) for batch in batches for image in batch[::2]]
    for start in range(0, len(visits), 10):
        assert sorted(visits[start : start + 10]) == list(range(10))


@given(labelled(), st.data(), seeds)
def test_one_per_class_has_no_positive_pair(labels, data, seed):
    sizes = sizes_of(labels)
    batch_size = data.draw(st.integers(1, len(sizes)))
    sampler = samplers.OnePerClass(labels, batch_size, seed=seed)
    batches = list(sampler)
    assert len(batches) == ceil(len(labels) / len(sizes)) * len(sizes) // batch_size
    for batch in batches:
        assert set(counts_of(labels, batch).values()) == {1}


@given(labelled(sizes=(1, 12)), st.integers(1, 4), st.booleans(), st.data(), seeds)
def test_class_chunks_are_used_once_before_new_ones_are_cut(labels, per_class, xbm, data, seed):
    sizes = sizes_of(labels)
    classes = data.draw(st.integers(1, len(sizes)))
    assume(classes * per_class <= len(labels))
    sampler = samplers.ClassChunks(labels, classes * per_class, per_class, xbm, seed=seed)
    batches = list(sampler)
    assert len(batches) == len(sampler) == len(labels) // (classes * per_class)
    chunks = {name: ceil(size / per_class) if xbm else max(1, size // per_class) for name, size in sizes.items()}
    left = dict(chunks)
    used = {name: [] for name in sizes}
    for batch in batches:
        if sum(count > 0 for count in left.values()) < classes:
            left, used = dict(chunks), {name: [] for name in sizes}
        counts = counts_of(labels, batch)
        assert len(counts) == classes
        assert set(counts.values()) == {per_class}
        for name in counts:
            left[name] -= 1
            assert left[name] >= 0
        for image in batch:
            used[int(labels[image])].append(image)
        for name, images in used.items():
            padding = max(0, chunks[name] * per_class - sizes[name])
            assert len(images) - len(set(images)) <= padding


@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.data())
def test_chunks_never_last_longer_than_the_longest_period(counts, data):
    classes = data.draw(st.integers(1, len(counts)))
    period = longest_period(torch.tensor(counts), classes)
    left, batches = sorted(counts), 0
    while sum(count > 0 for count in left) >= classes:  # the largest first: nobody can do better
        left = sorted([*left[:-classes], *(count - 1 for count in left[-classes:])])
        batches += 1
    assert batches == period


def test_xbm_prefers_classes_with_many_chunks():
    labels = torch.tensor([0] * 60 + [1] * 2 + [2] * 2 + [3] * 2)
    shares = []
    for xbm in (False, True):
        firsts = [next(iter(samplers.ClassChunks(labels, 2, 2, xbm, batches=1, seed=seed))) for seed in range(200)]
        shares.append(sum(int(labels[batch[0]]) == 0 for batch in firsts) / 200)
    assert shares[0] < 0.4 < 0.8 < shares[1]


@given(labelled(), st.integers(1, 12), seeds)
def test_category_random_lays_classes_out_and_cuts(labels, batch_size, seed):
    assume(len(labels) >= batch_size)
    batches = list(samplers.CategoryRandom(labels, batch_size, seed=seed))
    images = [image for batch in batches for image in batch]
    assert len(batches) == len(labels) // batch_size
    assert len(set(images)) == len(images)
    names = labels[images].unique_consecutive().tolist()
    assert len(names) == len(set(names))
    missing = set(range(len(labels))) - set(images)
    assert len(missing) == len(labels) % batch_size


BALANCED = [samplers.ClassBalanced, samplers.ClassChunks, samplers.ClassQueue]


@pytest.mark.parametrize("sampler", BALANCED)
def test_classes_with_one_image_repeat_it(sampler):
    labels = torch.arange(8)
    for batch in sampler(labels, batch_size=4, per_class=2):
        assert sorted(Counter(batch).values()) == [2, 2]
