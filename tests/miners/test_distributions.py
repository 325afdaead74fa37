"""How often a miner chooses what (SPEC B, D.2), with fixed seeds: frequencies against the closed forms."""

import math
from collections import Counter

import pytest
import torch

from lookalike import miners
from lookalike.targets import Pairs

DRAWS = 20_000


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def crowd(candidates, positives, negatives, seed=0):
    """One anchor many times over, so that one call is as many draws; candidates by position."""
    anchor = torch.nn.functional.normalize(torch.randn(1, candidates.shape[1], generator=seeded(seed)), dim=1)
    masks = torch.zeros(2, len(candidates), dtype=torch.bool)
    masks[0, positives], masks[1, negatives] = True, True
    pairs = Pairs(masks[0].expand(DRAWS, -1).clone(), masks[1].expand(DRAWS, -1).clone())
    return anchor, anchor.expand(DRAWS, -1).clone(), pairs


def frequencies(indices, among):
    counts = Counter(indices.tolist())
    assert set(counts) <= set(among)
    return [counts[j] / len(indices) for j in among]


def assert_frequencies(found, expected, draws=DRAWS):
    """Within five standard deviations, every one."""
    for share, probability in zip(found, expected, strict=True):
        assert abs(share - probability) < 5 * math.sqrt(probability * (1 - probability) / draws) + 1e-9


def closed_form(d, dim, lower=0.5):
    """SPEC B.4 in plain numbers, normalised over the anchor's negatives."""
    logs = []
    for x in d:
        bounded = max(x, lower)
        logs.append(-(dim - 2) * math.log(bounded) - (dim - 3) / 2 * math.log(max(1 - bounded**2 / 4, 1e-8)))
    weights = [math.exp(x - max(logs)) for x in logs]
    return [w / sum(weights) for w in weights]


@pytest.mark.parametrize("dim", [3, 4, 16])
def test_distance_weighted_frequencies(dim):
    candidates = torch.randn(8, dim, generator=seeded(dim + 1))
    positives, negatives = [0, 3], [1, 2, 4, 5, 6, 7]
    anchor, rows, pairs = crowd(candidates, positives, negatives, seed=dim)
    candidates[4] = anchor[0] + 0.05 * candidates[4]  # closer than the lower cut-off
    found = miners.DistanceWeighted(generator=seeded())(rows, pairs, candidates)
    unit = candidates / candidates.norm(dim=1, keepdim=True)
    d = (unit - anchor).norm(dim=1).tolist()
    assert_frequencies(frequencies(found.negative, negatives), closed_form([d[j] for j in negatives], dim))
    assert_frequencies(frequencies(found.positive, positives), [0.5, 0.5])


def test_distance_weighted_spreads_over_all_distances():
    """The point of it: random points lie at √2, yet the chosen distances fill the range above the cut-off."""
    dim = 8
    candidates = torch.randn(4000, dim, generator=seeded(2))
    anchors = torch.randn(400, dim, generator=seeded(3))
    pairs = Pairs(torch.ones(400, 4000, dtype=torch.bool), torch.ones(400, 4000, dtype=torch.bool))
    found = miners.DistanceWeighted(generator=seeded(4))(anchors, pairs, candidates)
    unit, other = (torch.nn.functional.normalize(x, dim=1) for x in (anchors, candidates))
    d = (unit - other[found.negative]).norm(dim=1)
    assert (d < 1.0).float().mean() > 0.25  # of random negatives 4 % are so near


def test_a_near_duplicate_starves_no_other_anchor():
    dim, count = 512, 64
    rows = torch.randn(count, dim, generator=seeded(5))
    rows[1] = rows[0] + 1e-3 * rows[1]  # of another class than row 0
    labels = torch.arange(count) % 16
    found = miners.DistanceWeighted(generator=seeded(6))(rows, labels)
    assert found.valid.all(), "every anchor has its triplet"
    assert found.negative[0] == 1
    assert found.negative[1] == 0
    assert len(set(found.negative[2:].tolist())) > 20, "and the others choose among many"
    unit = rows / rows.norm(dim=1, keepdim=True)
    for a in (2, 9, 33):
        negatives = [j for j in range(count) if labels[j] != labels[a]]
        weights = closed_form([(unit[a] - unit[j]).norm().item() for j in negatives], dim)
        draws = [miners.DistanceWeighted(generator=seeded(s))(rows, labels).negative[a].item() for s in range(60)]
        likely = {j for j, w in zip(negatives, weights, strict=True) if w > 1e-4}
        assert set(draws) <= likely


def test_upper_cutoff():
    candidates = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.1], [0.6, 0.8], [-1.0, 0.0]])
    rows = torch.tensor([[1.0, 0.0]]).expand(2000, -1).clone()
    positive = torch.tensor([True, False, False, False, False]).expand(2000, -1).clone()
    negative = torch.tensor([False, False, True, True, True]).expand(2000, -1).clone()
    miner = miners.DistanceWeighted(upper_cutoff=1.4, generator=seeded())
    assert set(miner(rows, Pairs(positive, negative), candidates).negative.tolist()) == {3}, "only one is near enough"
    negative[:, 3] = False
    found = miner(rows, Pairs(positive, negative), candidates).negative
    assert_frequencies(frequencies(found, [2, 4]), [0.5, 0.5], 2000)  # none is: uniform


@pytest.mark.parametrize("name", ["random", "softhard", "semihard"])
def test_uniform_where_the_text_says_uniform(name):
    """Far positives and near negatives in a circle: the sets of B.2 and B.3 written out for one anchor."""
    angles = torch.tensor([0.3, 0.5, 1.2, 0.6, 0.7, 0.9, 2.5])
    candidates = torch.stack([angles.cos(), angles.sin()], 1)
    rows = torch.tensor([[1.0, 0.0]]).expand(DRAWS, -1).clone()
    positive = torch.tensor([True, True, True, False, False, False, False]).expand(DRAWS, -1).clone()
    pairs = Pairs(positive, ~positive)
    found = miners.build(name, generator=seeded())(rows, pairs, candidates)
    if name == "random":
        assert_frequencies(frequencies(found.positive, [0, 1, 2]), [1 / 3] * 3)
        assert_frequencies(frequencies(found.negative, [3, 4, 5, 6]), [1 / 4] * 4)
    elif name == "softhard":  # behind the negative at 0.6: only 1.2; before the positive at 1.2: 0.6, 0.7, 0.9
        assert set(found.positive.tolist()) == {2}
        assert_frequencies(frequencies(found.negative, [3, 4, 5]), [1 / 3] * 3)
    else:
        assert_frequencies(frequencies(found.positive, [0, 1, 2]), [1 / 3] * 3)
        behind = found.negative[found.positive == 1]  # d in (0.495, 0.695): 0.6 and 0.7
        assert_frequencies(frequencies(behind, [3, 4]), [0.5, 0.5], len(behind))
        empty = found.negative[found.positive == 0]  # nothing in (0.299, 0.499): uniform over all
        assert_frequencies(frequencies(empty, [3, 4, 5, 6]), [1 / 4] * 4, len(empty))


@pytest.mark.parametrize("labels", [[0, 0, 0, 1, 1], [0, 0, 0, 0, 1, 1, 1, 2, 2]])
def test_roth_draws_uniformly_without_replacement(labels):
    """Both ways of drawing: from few triplets (a permutation) and from many (distinct numbers)."""
    count, calls = len(labels), 500
    every = [
        (a, p, n)
        for a in range(count)
        for p in range(count)
        for n in range(count)
        if a != p and labels[a] == labels[p] != labels[n]
    ]
    miner, counts = miners.Random(mode="roth", generator=seeded(1)), Counter()
    rows = torch.zeros(count, 2)
    for _ in range(calls):
        found = miner(rows, torch.tensor(labels))
        drawn = list(zip(found.anchor.tolist(), found.positive.tolist(), found.negative.tolist(), strict=True))
        assert found.valid.all()
        assert len(set(drawn)) == count, "without replacement"
        counts.update(drawn)
    assert set(counts) == set(every)
    assert_frequencies([counts[t] / calls for t in every], [count / len(every)] * len(every), calls)


def test_roth_returns_fewer_where_fewer_exist():
    found = miners.Random(mode="roth", generator=seeded())(torch.zeros(3, 2), torch.tensor([0, 0, 1]))
    assert found.valid.tolist() == [True, True, False]
    both = set(zip(found.anchor[:2].tolist(), found.positive[:2].tolist(), found.negative[:2].tolist(), strict=True))
    assert both == {(0, 1, 2), (1, 0, 2)}


class TestSwitched:
    labels = torch.tensor([0, 0, 0, 1, 1, 2])
    rows = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))

    def test_never_at_0(self):
        usual = miners.DistanceWeighted(generator=seeded(3))(self.rows, self.labels)
        found = miners.Switched(probability=0.0, generator=seeded(3))(self.rows, self.labels)
        assert torch.equal(found.positive, usual.positive)
        assert torch.equal(found.negative, usual.negative)
        assert torch.equal(found.valid, usual.valid)

    def test_always_at_1(self):
        found = miners.Switched(probability=1.0, generator=seeded(3))(self.rows, self.labels)
        assert found.valid.tolist() == [True] * 5 + [False]
        for a, p, n in zip(found.anchor[:5], found.positive[:5], found.negative[:5], strict=True):
            assert a == p
            assert n != a
            assert self.labels[n] == self.labels[a]

    def test_with_its_probability_for_each_anchor_and_a_uniform_positive(self):
        count, calls, turned, first = 300, 20, 0, 0
        rows, labels = torch.randn(count, 4, generator=seeded(1)), torch.arange(count) % 100  # three of a class
        miner = miners.Switched(probability=0.35, generator=seeded(4))
        for _ in range(calls):
            found = miner(rows, labels)
            here = found.positive == found.anchor
            turned += int(here.sum())
            # the two positives of a are a + 100 and a + 200, round the corner
            first += int(((found.negative - found.anchor) % count == 100)[here].sum())
        assert_frequencies([turned / (count * calls)], [0.35], count * calls)
        assert_frequencies([first / turned], [0.5], turned)

    def test_the_losses_see_a_repelled_positive(self):
        """D.2: triplet [γ − d_ap′]_+, contrastive [m− − d_ap′]_+, margin [β − d_ap′ + γ]_+, SNR [γ − snr(a, p′)]_+."""
        from lookalike import losses

        angles = torch.tensor([0.0, 0.05, 0.1], dtype=torch.float64)
        rows = torch.stack([angles.cos(), angles.sin()], 1)
        found = miners.Switched(probability=1.0, generator=seeded(1))(rows, torch.tensor([0, 0, 0]))
        d = (rows - rows[found.negative]).norm(dim=1)
        centred, other = rows - rows.mean(1, keepdim=True), rows[found.negative]
        noise = ((rows - other) - (rows - other).mean(1, keepdim=True)).square().sum(1) / centred.square().sum(1)
        expected = {
            "triplet": (0.2 - d).relu().mean(),
            "contrastive": (1 - d).relu().mean(),
            "margin": (1.2 - d + 0.2).relu().mean(),
            "snr": (0.2 - noise)[noise < 0.2].mean(),
        }
        for name, value in expected.items():
            loss = losses.build(name, **({"sum_weight": 0.0} if name == "snr" else {})).double()
            torch.testing.assert_close(loss(rows, found), value, rtol=1e-7, atol=1e-9, msg=name)
