"""How often a miner chooses what [math B, D.2], with fixed seeds: frequencies against the closed forms."""

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


def assert_frequencies(shares, expected, draws=DRAWS):
    """Within five standard deviations, every one."""
    for share, probability in zip(shares, expected, strict=True):
        assert abs(share - probability) < 5 * math.sqrt(probability * (1 - probability) / draws) + 1e-9


def closed_form(d, dim, lower=0.5):
    """[math B.4] in plain numbers, normalised over the anchor's negatives."""
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
    mined = miners.DistanceWeighted(generator=seeded())(rows, pairs, candidates)
    unit = candidates / candidates.norm(dim=1, keepdim=True)
    d = (unit - anchor).norm(dim=1).tolist()
    assert_frequencies(frequencies(mined.negative, negatives), closed_form([d[j] for j in negatives], dim))
    assert_frequencies(frequencies(mined.positive, positives), [0.5, 0.5])


def test_distance_weighted_spreads_over_all_distances():
    """The point of it: random points lie at √2, yet the chosen distances fill the range above the cut-off."""
    dim = 8
    candidates = torch.randn(4000, dim, generator=seeded(2))
    anchors = torch.randn(400, dim, generator=seeded(3))
    pairs = Pairs(torch.ones(400, 4000, dtype=torch.bool), torch.ones(400, 4000, dtype=torch.bool))
    mined = miners.DistanceWeighted(generator=seeded(4))(anchors, pairs, candidates)
    unit, other = (torch.nn.functional.normalize(x, dim=1) for x in (anchors, candidates))
    d = (unit - other[mined.negative]).norm(dim=1)
    assert (d < 1.0).float().mean() > 0.25  # of random negatives 4% are so near


def test_a_near_duplicate_starves_no_other_anchor():
    dim, count = 512, 64
    rows = torch.randn(count, dim, generator=seeded(5))
    rows[1] = rows[0] + 1e-3 * rows[1]  # of another class than row 0
    labels = torch.arange(count) % 16
    mined = miners.DistanceWeighted(generator=seeded(6))(rows, labels)
    assert mined.valid.all(), "every anchor has its triplet"
    assert mined.negative[0] == 1
    assert mined.negative[1] == 0
    assert len(set(mined.negative[2:].tolist())) > 20, "and the others choose among many"
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
    mined = miner(rows, Pairs(positive, negative), candidates).negative
    assert_frequencies(frequencies(mined, [2, 4]), [0.5, 0.5], 2000)  # none is: uniform


@pytest.mark.parametrize("name", ["random", "softhard", "semihard"])
def test_uniform_where_the_text_says_uniform(name):
    """Far positives and near negatives in a circle: the sets of B.2 and B.3 written out for one anchor."""
    angles = torch.tensor([0.3, 0.5, 1.2, 0.6, 0.7, 0.9, 2.5])
    candidates = torch.stack([angles.cos(), angles.sin()], 1)
    rows = torch.tensor([[1.0, 0.0]]).expand(DRAWS, -1).clone()
    positive = torch.tensor([True, True, True, False, False, False, False]).expand(DRAWS, -1).clone()
    pairs = Pairs(positive, ~positive)
    mined = miners.build(name, generator=seeded())(rows, pairs, candidates)
    if name == "random":
        assert_frequencies(frequencies(mined.positive, [0, 1, 2]), [1 / 3] * 3)
        assert_frequencies(frequencies(mined.negative, [3, 4, 5, 6]), [1 / 4] * 4)
    elif name == "softhard":  # behind the negative at 0.6: only 1.2; before the positive at 1.2: 0.6, 0.7, 0.9
        assert set(mined.positive.tolist()) == {2}
        assert_frequencies(frequencies(mined.negative, [3, 4, 5]), [1 / 3] * 3)
    else:
        assert_frequencies(frequencies(mined.positive, [0, 1, 2]), [1 / 3] * 3)
        behind = mined.negative[mined.positive == 1]  # d in (0.495, 0.695): 0.6 and 0.7
        assert_frequencies(frequencies(behind, [3, 4]), [0.5, 0.5], len(behind))
        empty = mined.negative[mined.positive == 0]  # nothing in (0.299, 0.499): uniform over all
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
        mined = miner(rows, torch.tensor(labels))
        triplets = list(zip(mined.anchor.tolist(), mined.positive.tolist(), mined.negative.tolist(), strict=True))
        assert mined.valid.all()
        assert len(set(triplets)) == count, "without replacement"
        counts.update(triplets)
    assert set(counts) == set(every)
    assert_frequencies([counts[t] / calls for t in every], [count / len(every)] * len(every), calls)
    first, again = (miners.Random("roth", generator=seeded(2))(rows, torch.tensor(labels)) for _ in range(2))
    assert torch.equal(first.negative, again.negative), "drawn by its generator alone"


def test_roth_returns_fewer_where_fewer_exist():
    mined = miners.Random(mode="roth", generator=seeded())(torch.zeros(3, 2), torch.tensor([0, 0, 1]))
    assert mined.valid.tolist() == [True, True, False]
    both = set(zip(mined.anchor[:2].tolist(), mined.positive[:2].tolist(), mined.negative[:2].tolist(), strict=True))
    assert both == {(0, 1, 2), (1, 0, 2)}


class TestSwitched:
    labels = torch.tensor([0, 0, 0, 1, 1, 2])
    rows = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))

    def test_never_at_0(self):
        unswitched = miners.DistanceWeighted(generator=seeded(3))(self.rows, self.labels)
        mined = miners.Switched(probability=0.0, generator=seeded(3))(self.rows, self.labels)
        assert torch.equal(mined.positive, unswitched.positive)
        assert torch.equal(mined.negative, unswitched.negative)
        assert torch.equal(mined.valid, unswitched.valid)

    def test_always_at_1(self):
        mined = miners.Switched(probability=1.0, generator=seeded(3))(self.rows, self.labels)
        assert mined.valid.tolist() == [True] * 5 + [False]
        for a, p, n in zip(mined.anchor[:5], mined.positive[:5], mined.negative[:5], strict=True):
            assert a == p
            assert n != a
            assert self.labels[n] == self.labels[a]

    def test_with_its_probability_for_each_anchor_and_a_uniform_positive(self):
        count, calls, switched, first = 300, 20, 0, 0
        rows, labels = torch.randn(count, 4, generator=seeded(1)), torch.arange(count) % 100  # three of a class
        miner = miners.Switched(probability=0.35, generator=seeded(4))
        for _ in range(calls):
            mined = miner(rows, labels)
            here = mined.positive == mined.anchor
            switched += int(here.sum())
            # the two positives of a are a + 100 and a + 200, modulo the count
            first += int(((mined.negative - mined.anchor) % count == 100)[here].sum())
        assert_frequencies([switched / (count * calls)], [0.35], count * calls)
        assert_frequencies([first / switched], [0.5], switched)

    def test_the_losses_see_a_repelled_positive(self):
        """D.2: triplet [γ − d_ap′]_+, contrastive [m− − d_ap′]_+, margin [β − d_ap′ + γ]_+, SNR [γ − snr(a, p′)]_+."""
        from lookalike import losses

        angles = torch.tensor([0.0, 0.05, 0.1], dtype=torch.float64)
        rows = torch.stack([angles.cos(), angles.sin()], 1)
        mined = miners.Switched(probability=1.0, generator=seeded(1))(rows, torch.tensor([0, 0, 0]))
        d = (rows - rows[mined.negative]).norm(dim=1)
        centred, other = rows - rows.mean(1, keepdim=True), rows[mined.negative]
        noise = ((rows - other) - (rows - other).mean(1, keepdim=True)).square().sum(1) / centred.square().sum(1)
        expected = {
            "triplet": (0.2 - d).relu().mean(),
            "contrastive": (1 - d).relu().mean(),
            "margin": (1.2 - d + 0.2).relu().mean(),
            "snr": (0.2 - noise)[noise < 0.2].mean(),
        }
        for name, value in expected.items():
            loss = losses.build(name, **({"sum_weight": 0.0} if name == "snr" else {})).double()
            torch.testing.assert_close(loss(rows, mined), value, rtol=1e-7, atol=1e-9, msg=name)
