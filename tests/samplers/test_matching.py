"""DDM and FRD [math C.3, C.4]: costs against plain loops and scipy, and batches nearer to the data than random ones."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import sqrtm
from scipy.stats import wasserstein_distance

from lookalike import samplers
from lookalike.errors import UserError
from lookalike.samplers.big_batch import Matching
from lookalike.samplers.distribution_match import BINS, matching_costs
from lookalike.samplers.frechet import frechet_costs
from lookalike.samplers.grouping import Groups

MATCHERS = [samplers.DistributionMatch, samplers.Frechet]


def example(seed=0, count=40, dim=5, candidates=4, size=12):
    random = np.random.default_rng(seed)
    big = random.normal(size=(count, dim))
    places = np.stack([random.choice(count, size, replace=False) for _ in range(candidates)])
    return big, places


def distances_of(points):
    return np.array([np.linalg.norm(a - b) for i, a in enumerate(points) for b in points[i + 1 :]])


@pytest.mark.parametrize("roth_w1", [False, True])
def test_matching_costs_are_those_of_the_loops(roth_w1):
    big, places = example()
    distances = distances_of(big)
    limits = (distances.min(), distances.max())
    centres = np.linspace(*limits, BINS + 1)[:-1] + (limits[1] - limits[0]) / BINS / 2
    whole = np.histogram(distances, BINS, limits)[0] / len(distances)
    expected = []
    for candidate in places:
        part = big[candidate]
        inside = distances_of(part)
        share = np.histogram(inside, BINS, limits)[0] / len(inside)
        if roth_w1:
            transport = wasserstein_distance(whole, share)
        else:
            transport = wasserstein_distance(centres, centres, whole, share)
        moments = np.linalg.norm(big.mean(0) - part.mean(0)) + np.linalg.norm(big.std(0) - part.std(0))
        expected.append(moments + 75 * 2 * transport)
    costs = matching_costs(torch.tensor(big), torch.tensor(places), roth_w1)
    assert costs.tolist() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("dim", [3, 12, 30])
def test_frechet_costs_are_those_of_the_matrix_root(dim):
    big, places = example(dim=dim)
    plain, ridged = [], []
    for candidate in places:
        part = big[candidate]
        mean = ((big.mean(0) - part.mean(0)) ** 2).sum()
        covariances = np.cov(big.T), np.cov(part.T)
        traces = mean + sum(np.trace(covariance) for covariance in covariances)
        roots = np.linalg.eigvals(covariances[0] @ covariances[1]).real.clip(0)
        plain.append(traces - 2 * np.sqrt(roots).sum())
        left, right = (covariance + 1e-8 * np.eye(dim) for covariance in covariances)
        ridged.append(traces - 2 * np.trace(sqrtm(left @ right).real))
    costs = frechet_costs(torch.tensor(big), torch.tensor(places)).numpy()
    assert costs == pytest.approx(plain, abs=1e-6)  # the eigenvalues of a product without symmetry are less exact
    # 1e-8 I adds at most √1e-8 (tr √Σ_B + tr √Σ_c) + d · 1e-8 to the trace of the root.
    assert np.abs(costs - ridged).max() < 2 * (1e-4 * 2 * dim * 1.5 + dim * 1e-8)
    assert costs.argmin() == np.argmin(ridged)


def test_frechet_cost_of_the_whole_is_zero():
    big, _ = example(dim=30)
    assert frechet_costs(torch.tensor(big), torch.arange(40)[None]).item() == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("costs", [matching_costs, frechet_costs])
@pytest.mark.parametrize("big", [torch.zeros(8, 3), torch.ones(8, 3) * 1e4, torch.eye(8)[:, :3]])
def test_costs_of_collapsed_embeddings_are_finite(costs, big):
    assert costs(big, torch.tensor([[0, 1, 2, 3], [4, 4, 5, 5]])).isfinite().all()


@given(st.lists(st.integers(1, 9), min_size=3, max_size=12), st.integers(1, 3), st.integers(0, 99), st.booleans())
def test_candidates_are_class_balanced_parts_of_a_class_balanced_big_batch(sizes, per_class, seed, roth):
    labels = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    matching = Matching(Groups.of(labels), 3 * per_class, per_class, 10 * per_class, 4, roth, frechet_costs)
    generator = torch.Generator().manual_seed(seed)
    big = matching.big(generator)
    counts = Counter(labels[big].tolist())
    assert len(big) == 10 * per_class
    assert all(count % per_class == 0 for count in counts.values())
    if not roth:
        assert max(counts.values()) - min(counts[label] for label in range(len(sizes))) <= per_class
        for label, count in counts.items():
            if count <= sizes[label]:
                assert len(set(big[labels[big] == label].tolist())) == count
    for places in matching.draw(big, generator).tolist():
        inside = Counter(labels[big[places]].tolist())
        assert all(count % per_class == 0 for count in inside.values())
        assert sum(inside.values()) == 3 * per_class
        if not roth:
            assert len(inside) == 3
            assert len(set(places)) == len(places)


@pytest.mark.parametrize("costs", [matching_costs, frechet_costs])
def test_the_best_candidate_is_taken(costs, generator):
    labels = torch.arange(60) // 4
    bank = samplers.EmbeddingBank.of(torch.randn(60, 3, generator=generator))
    matching = Matching(Groups.of(labels), 8, 2, 30, 10, False, costs)
    best = matching.best(bank.vectors, torch.Generator().manual_seed(5))
    again = torch.Generator().manual_seed(5)
    big = matching.big(again)
    places = matching.draw(big, again)
    costs_of_all = costs(bank.vectors[big], places)
    assert torch.equal(best, big[places[costs_of_all.argmin()]])
    assert costs_of_all.min() < costs_of_all.max()


def clustered(generator, classes=40, each=6, dim=6):
    centres = torch.randn(classes, dim, generator=generator)
    labels = torch.arange(classes).repeat_interleave(each)
    return labels, centres[labels] + 0.3 * torch.randn(len(labels), dim, generator=generator)


def frechet_to_all(points, batch):
    return frechet_costs(points, torch.tensor([batch])).item()


def distances_to_all(points, batch):
    return wasserstein_distance(torch.pdist(points).numpy(), torch.pdist(points[batch]).numpy())


@pytest.mark.parametrize(
    ("sampler", "gap"), [(samplers.DistributionMatch, distances_to_all), (samplers.Frechet, frechet_to_all)]
)
def test_chosen_batches_are_nearer_to_the_data_than_random_ones(sampler, gap, generator):
    labels, points = clustered(generator)
    bank = samplers.EmbeddingBank.of(points)
    chosen = [gap(points, batch) for batch in sampler(labels, bank, batch_size=16, per_class=2, big_batch=160)]
    random = [gap(points, batch) for batch in samplers.ClassBalanced(labels, batch_size=16, per_class=2)]
    assert len(chosen) == len(random) == 15
    assert np.mean(chosen) < 0.8 * np.mean(random)


@pytest.mark.parametrize("sampler", MATCHERS)
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"big_batch": 4}, r"the big batch \(4\) must be at least as large as the batch \(8\)"),
        ({"big_batch": 31}, "2 images per class do not divide a big batch of 31"),
        ({"candidates": 0}, "at least one candidate, not 0"),
        ({"batch_size": 1, "per_class": 1}, "a batch of 1 has no distances to match"),
        ({"batch_size": 48}, "needs 24 classes, the data has 20"),
    ],
)
def test_impossible_settings_are_refused(sampler, settings, message):
    labels = torch.arange(60) // 3
    with pytest.raises(UserError, match=message):
        sampler(labels, samplers.EmbeddingBank(60, 2), **({"batch_size": 8, "big_batch": 30} | settings))
