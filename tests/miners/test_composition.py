"""What every miner may choose [math B]: properties that hold for any batch, under Hypothesis."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookalike import miners
from lookalike.catalog import settings_of
from lookalike.targets import Pairs, Triplets

# `switched` also returns triplets, some of them without a positive
TUPLE_MINERS = [name for name in miners.names() if name not in ("multi_similarity", "switched")]


@st.composite
def batches(draw):
    labels = draw(st.lists(st.integers(0, 3), min_size=1, max_size=9))
    seed = draw(st.integers(0, 1000))
    rows = torch.randn(len(labels), 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return rows, torch.tensor(labels), seed


def mine(name, rows, targets, seed=0, candidates=None, **settings):
    if "generator" in settings_of(miners.MEMBERS[name]):
        settings["generator"] = torch.Generator().manual_seed(seed)
    miner = miners.build(name, **settings)
    return miner(rows, targets) if candidates is None else miner(rows, targets, candidates)


def apart(rows, columns=None):
    unit = rows / rows.norm(dim=1, keepdim=True)
    other = unit if columns is None else columns / columns.norm(dim=1, keepdim=True)
    return torch.cdist(unit, other, compute_mode="donot_use_mm_for_euclid_dist")


def valid_triplets(triplets):
    """The valid (a, p, n)."""
    columns = (triplets.anchor, triplets.positive, triplets.negative, triplets.valid)
    return [(a, p, n) for a, p, n, valid in zip(*(part.tolist() for part in columns), strict=True) if valid]


@pytest.mark.parametrize("name", TUPLE_MINERS)
@given(batch=batches())
def test_one_triplet_per_anchor_that_has_both(name, batch):
    rows, labels, seed = batch
    triplets = mine(name, rows, labels, seed)
    assert isinstance(triplets, Triplets)
    assert triplets.anchor.tolist() == list(range(len(labels)))
    assert torch.equal(triplets.labels, labels)
    pairs = Pairs.within(labels)
    assert torch.equal(triplets.valid, pairs.positive.any(1) & pairs.negative.any(1))
    for a, p, n in valid_triplets(triplets):
        assert a != p
        assert labels[a] == labels[p] != labels[n]
    assert max([*triplets.positive.tolist(), *triplets.negative.tolist()]) < len(labels), "indices stay inside"


@pytest.mark.parametrize("name", [*TUPLE_MINERS, "multi_similarity"])
@given(batch=batches())
def test_candidates_by_id(name, batch):
    """Into a gallery that contains the batch itself: never the own copy, always a column of the right class."""
    rows, labels, seed = batch
    columns, column_labels = torch.cat([rows, rows + 0.1]), torch.cat([labels, labels])
    ids = torch.arange(len(labels))
    pairs = Pairs.across(labels, column_labels, ids, torch.cat([ids, ids + 100]))
    mined = mine(name, rows, pairs, seed, columns)
    if name == "multi_similarity":
        assert (pairs.positive | ~mined.positive).all()
        assert (pairs.negative | ~mined.negative).all()
        return
    for a, p, n in valid_triplets(mined):
        assert p != a
        assert labels[a] == column_labels[p]
        assert labels[a] != column_labels[n]


@pytest.mark.parametrize("name", [*TUPLE_MINERS, "switched"])
def test_the_same_generator_gives_the_same_triplets(name):
    rows = torch.randn(30, 4, generator=torch.Generator().manual_seed(1))
    labels = torch.arange(30) % 5
    first = mine(name, rows, labels, seed=7)
    torch.manual_seed(123)  # the global generator plays no part
    state = torch.get_rng_state()
    second = mine(name, rows, labels, seed=7)
    assert torch.equal(torch.get_rng_state(), state)
    assert valid_triplets(first) == valid_triplets(second)
    if name != "hard":
        assert valid_triplets(mine(name, rows, labels, seed=8)) != valid_triplets(first)


@pytest.mark.parametrize("name", miners.names())
def test_no_gradient_passes(name):
    rows = torch.randn(6, 3).requires_grad_()
    mined = mine(name, rows, torch.tensor([0, 0, 1, 1, 2, 2]))
    assert not any(part.requires_grad for part in vars(mined).values() if isinstance(part, torch.Tensor))


@given(batches(), st.sampled_from([0.05, 0.2, 0.6]))
def test_semihard_takes_from_the_band_behind_the_positive(batch, margin):
    rows, labels, seed = batch
    d = apart(rows)
    for upper in (True, False):
        for a, p, n in valid_triplets(mine("semihard", rows, labels, seed, margin=margin, upper=upper)):
            negatives = [j for j in range(len(labels)) if labels[j] != labels[a]]
            band = [j for j in negatives if d[a, p] < d[a, j] and (not upper or d[a, j] < d[a, p] + margin)]
            assert n in (band or negatives)


@given(batches())
def test_softhard_takes_from_the_overlap(batch):
    rows, labels, seed = batch
    d = apart(rows)
    for a, p, n in valid_triplets(mine("softhard", rows, labels, seed)):
        positives = [j for j in range(len(labels)) if labels[j] == labels[a] and j != a]
        negatives = [j for j in range(len(labels)) if labels[j] != labels[a]]
        far = [j for j in positives if d[a, j] > min(d[a, k] for k in negatives)]
        near = [j for j in negatives if d[a, j] < max(d[a, k] for k in positives)]
        assert p in (far or positives)
        assert n in (near or negatives)


@given(batches())
def test_hard_takes_the_farthest_positive_and_the_nearest_negative(batch):
    rows, labels, _ = batch
    d = apart(rows)
    for a, p, n in valid_triplets(mine("hard", rows, labels)):
        assert d[a, p] >= max(d[a, j] for j in range(len(labels)) if labels[j] == labels[a] and j != a) - 1e-9
        assert d[a, n] <= min(d[a, j] for j in range(len(labels)) if labels[j] != labels[a]) + 1e-9


@given(batches())
def test_hard_nearest_keeps_as_many_negatives_as_the_largest_positive_set(batch):
    rows, labels, _ = batch
    mined, everyone, d = mine("hard", rows, labels, nearest=True), Pairs.within(labels), apart(rows)
    most = int(everyone.positive.sum(1).max())
    assert torch.equal(mined.positive, everyone.positive)
    for a in range(len(labels)):
        order = sorted(everyone.negative[a].nonzero().flatten().tolist(), key=lambda j: d[a, j].item())
        assert mined.negative[a].nonzero().flatten().tolist() == sorted(order[:most])


@given(batches(), st.sampled_from([0.0, 0.1, 0.4]))
def test_multi_similarity_keeps_what_the_other_side_makes_informative(batch, margin):
    rows, labels, _ = batch
    mined, everyone = mine("multi_similarity", rows, labels, margin=margin), Pairs.within(labels)
    S = 1 - apart(rows).square() / 2
    for a in range(len(labels)):
        positives, negatives = (mask[a].nonzero().flatten().tolist() for mask in (everyone.positive, everyone.negative))
        expected_positives = [j for j in positives if negatives and S[a, j] < max(S[a, k] for k in negatives) + margin]
        expected_negatives = [j for j in negatives if positives and S[a, j] > min(S[a, k] for k in positives) - margin]
        if margin > 0:  # at margin 0 the hardest pairs may tie up to rounding
            assert mined.positive[a].nonzero().flatten().tolist() == expected_positives
            assert mined.negative[a].nonzero().flatten().tolist() == expected_negatives
        assert mined.positive[a].any() == mined.negative[a].any(), "both sets are empty together, or neither"


FORMS = [(name, {}) for name in miners.names()]
FORMS += [("random", {"mode": "roth"}), ("hard", {"nearest": True}), ("distance_weighted", {"upper_cutoff": 1.0})]


@pytest.mark.parametrize(("rows", "columns"), [(0, None), (0, 0), (0, 3), (3, 0)])
@pytest.mark.parametrize(("name", "settings"), FORMS)
def test_no_anchors_or_no_candidates_give_no_tuples(name, settings, rows, columns):
    targets, candidates = torch.arange(rows) % 2, None
    if columns is not None and name != "switched":  # which takes no candidates
        targets, candidates = Pairs.across(targets, torch.arange(columns) % 2), torch.ones(columns, 4)
    mined = mine(name, torch.ones(rows, 4), targets, candidates=candidates, **settings)
    if isinstance(mined, Triplets):
        assert len(mined.anchor) == len(mined.positive) == len(mined.negative) == rows
        assert not mined.valid.any() or name == "switched"
    else:
        assert mined.positive.shape == mined.negative.shape == (rows, rows if columns is None else columns)


@pytest.mark.parametrize("name", miners.names())
def test_repr_shows_the_settings_and_not_the_generator(name):
    settings = set(settings_of(miners.MEMBERS[name])) - {"generator"}
    for miner in (miners.build(name), miners.MEMBERS[name]()):
        assert repr(miner).startswith(f"{type(miner).__name__}(")
        assert all(f"{setting}={getattr(miner, setting)!r}" in repr(miner) for setting in settings)
        assert "generator" not in repr(miner)


@pytest.mark.parametrize("labels", [[0, 0, 0], [0, 1, 2], [4]])
@pytest.mark.parametrize("name", [*TUPLE_MINERS, "multi_similarity"])
def test_nothing_to_choose(name, labels):
    mined = mine(name, torch.eye(3)[: len(labels)], torch.tensor(labels))
    assert not (mined.valid if isinstance(mined, Triplets) else mined.positive | mined.negative).any()
    if name == "random":
        mined = mine(name, torch.eye(3)[: len(labels)], torch.tensor(labels), mode="roth")
        assert not mined.valid.any()
