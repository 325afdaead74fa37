"""GC and D² coresets [math C.5, C.6]: points that cover the big batch, each with images of its class."""

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookalike import samplers
from lookalike.cluster import greedy_k_center
from lookalike.errors import UserError
from lookalike.samplers.big_batch import completed, pairwise
from lookalike.samplers.coreset import farthest_first
from lookalike.samplers.d2_coreset import d2_sample, log_densities
from lookalike.samplers.grouping import Groups

filled = samplers.EmbeddingBank.of
CORESETS = [samplers.Coreset, samplers.D2Coreset]


def seeded(seed):
    return torch.Generator().manual_seed(seed)


@given(st.integers(0, 99), st.integers(2, 20))
def test_farthest_first_is_greedy_k_center_from_a_random_start(seed, count):
    points = torch.randn(30, 4, generator=seeded(seed))
    chosen = farthest_first(points, count, seeded(seed))
    assert len(set(chosen.tolist())) == count
    rest = greedy_k_center(points, count - 1, centres=points[chosen[:1]])
    assert chosen[1:].tolist() == rest.tolist()


def test_duplicates_are_chosen_once_each():
    assert sorted(farthest_first(torch.zeros(6, 2), 6, seeded(0)).tolist()) == list(range(6))
    assert sorted(d2_sample(torch.zeros(6, 2), 6, seeded(0)).tolist()) == list(range(6))


def test_softened_choices_are_among_the_farthest_three_percent():
    points = torch.randn(200, 4, generator=seeded(1))
    table = pairwise(points)
    chosen = farthest_first(points, 20, seeded(2), softened=True).tolist()
    assert chosen != farthest_first(points, 20, seeded(2)).tolist()
    for count in range(1, 20):
        nearest = table[chosen[:count]].amin(0)
        assert nearest[chosen[count]] >= nearest.sort(descending=True).values[5]


def test_d2_follows_its_weights():
    points = torch.tensor([[0.0, 0.0], [3.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.5]])
    density = log_densities(points).exp()
    assert density == pytest.approx(normal_densities(points), rel=1e-9)
    firsts, pairs = Counter(), Counter()
    for seed in range(1200):
        first, second = d2_sample(points, 2, seeded(seed)).tolist()
        firsts[first] += 1
        pairs[first, second] += 1
    start = firsts.most_common(1)[0][0]
    weights = density * pairwise(points).square()[start]
    for other, expected in enumerate((weights / weights.sum()).tolist()):
        share = pairs[start, other] / firsts[start]
        assert share == pytest.approx(expected, abs=4 * (expected * (1 - expected) / firsts[start]) ** 0.5 + 1e-9)


def normal_densities(points):
    centred = points.double() - points.double().mean(0)
    inverse = torch.linalg.inv(points.double().T.cov())
    return torch.tensor([float((-0.5 * row @ inverse @ row).exp()) for row in centred], dtype=torch.float64)


def test_power_zero_forgets_the_distance():
    points = torch.cat([torch.zeros(20, 1), torch.full((20, 1), 0.01), torch.full((1, 1), 3.0)])
    far = [sum(40 in d2_sample(points, 3, seeded(seed), power) for seed in range(200)) for power in (0.0, 2.0)]
    assert far[0] < 20 < far[1]


@given(st.lists(st.integers(1, 6), min_size=1, max_size=6), st.integers(1, 4), st.integers(0, 99), st.data())
def test_points_are_completed_by_different_images_of_their_class(sizes, per_class, seed, data):
    labels = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    points = data.draw(st.lists(st.integers(0, len(labels) - 1), min_size=1, unique=True))
    batch = completed(Groups.of(labels), points, per_class, seeded(seed))
    assert batch[::per_class] == points
    expected = Counter()
    for place, point in enumerate(points):
        visit = batch[place * per_class : (place + 1) * per_class]
        assert {int(labels[image]) for image in visit} == {int(labels[point])}
        expected[int(labels[point])] += per_class
    for label, count in expected.items():
        images = [image for image in batch if labels[image] == label]
        if count <= sizes[label]:
            assert len(set(images)) == len(images)
        if per_class > 1 and sizes[label] > 1:
            assert all(
                len(set(batch[place * per_class : (place + 1) * per_class])) > 1
                for place, point in enumerate(points)
                if labels[point] == label
            )


@pytest.mark.parametrize("sampler", CORESETS)
@pytest.mark.parametrize("per_class", [1, 2, 4])
def test_batches_hold_n_images_of_the_class_of_every_point(sampler, per_class, generator):
    labels = torch.arange(64) % 16
    bank = filled(torch.randn(64, 3, generator=generator))
    for batch in sampler(labels, bank, batch_size=8, per_class=per_class, big_batch=32):
        assert all(count % per_class == 0 for count in Counter(labels[batch].tolist()).values())
        assert len(set(batch)) == 8


def test_the_places_chosen_are_places_in_the_big_batch(generator):
    """The released code looks them up in another big batch; then most batches would miss the one far point."""
    points = torch.randn(100, 3, generator=generator)
    points[41] = 50.0
    sampler = samplers.Coreset(torch.arange(100), filled(points), batch_size=10, per_class=1, big_batch=100)
    assert all(41 in batch for batch in sampler)


@pytest.mark.parametrize("projection", [None, 4])
@pytest.mark.parametrize("softened", [False, True])
def test_coresets_cover_more_than_random_batches(projection, softened, generator):
    points = torch.randn(600, 8, generator=generator)
    labels = torch.arange(600)
    settings = {"batch_size": 30, "per_class": 1, "big_batch": 200}
    chosen = samplers.Coreset(labels, filled(points), softened=softened, projection=projection, **settings)
    random = samplers.ClassBalanced(labels, batch_size=30, per_class=1)

    def mean_gap(sampler):
        return torch.stack([torch.pdist(points[batch]).min() for batch in sampler]).mean()

    assert mean_gap(chosen) > (1.8 if projection is None else 1.15) * mean_gap(random)


def test_a_big_batch_larger_than_the_data_is_all_of_it(generator):
    points = torch.randn(20, 3, generator=generator)
    batches = list(samplers.Coreset(torch.arange(20), filled(points), batch_size=20, per_class=1, big_batch=512))
    assert [sorted(batch) for batch in batches] == [list(range(20))]


@pytest.mark.parametrize("sampler", CORESETS)
def test_one_image_is_a_batch(sampler):
    assert list(sampler(torch.tensor([0]), filled(torch.ones(1, 3)), batch_size=1, per_class=1)) == [[0]]
    assert list(sampler(torch.tensor([0]), filled(torch.ones(1, 3)), batch_size=4, per_class=2, batches=1)) == [[0] * 4]


@pytest.mark.parametrize("settings", [{}, {"softened": True}])
def test_more_points_than_images_repeat_them(settings):
    sampler = samplers.Coreset(torch.arange(60) // 3, filled(torch.rand(60, 2)), 240, 2, batches=1, **settings)
    assert set(next(iter(sampler))) == set(range(60))


@pytest.mark.parametrize("sampler", CORESETS)
def test_impossible_settings_are_refused(sampler):
    labels = torch.arange(60) // 3
    bank = filled(torch.zeros(60, 2))
    with pytest.raises(UserError, match="20 points cannot be chosen out of a big batch of 10"):
        sampler(labels, bank, batch_size=40, per_class=2, big_batch=10)
    with pytest.raises(UserError, match="3 images per class do not divide a batch of 8"):
        sampler(labels, bank, batch_size=8, per_class=3)
    with pytest.raises(UserError, match="projection must be a positive number of dimensions, not 0"):
        list(sampler(labels, bank, batch_size=8, per_class=2, projection=0))


@pytest.mark.parametrize("name", ["coreset", "d2_coreset", "distribution_match", "frechet"])
def test_the_unit_of_the_embeddings_does_not_matter(name, generator):
    """Squares of 1e25 overflow; which points lie far apart does not depend on the unit."""
    vectors, labels = torch.randn(24, 4, generator=generator), torch.arange(24) // 3

    def batches(scale):
        bank = filled(vectors * scale)
        return [list(batch) for batch in samplers.build(name, labels=labels, bank=bank, batch_size=6, big_batch=12)]

    large = batches(2.0**90)
    assert large
    assert large == batches(2.0**100)
    assert all(0 <= row < 24 for batch in large for row in batch)
