"""Beyond one class per item: every pair loss and miner takes sets of labels, lists and masks; class losses say no."""

import pytest
import torch

from lookalike import losses, miners
from lookalike.catalog import settings_of
from lookalike.errors import UserError
from lookalike.label_sets import LabelSets
from lookalike.targets import Pairs, Triplets
from tests.contracts.catalogue import CLASS_NAMES, PAIR_NAMES, TAKES_TRIPLETS, build, rows

LABELS = torch.tensor([2, 0, 1, 1, 2, 0, 3, 0])
SETS = [{"red", "round"}, {"red"}, None, {"blue", "round"}, {"blue"}, {"red", "blue"}, {"green"}, {"green"}]
MASK = torch.tensor([[bool(a and b and a & b) for b in SETS] for a in SETS])


def value(name, targets):
    loss = build(name)
    torch.manual_seed(1)
    embeddings = rows(8).requires_grad_()
    total = loss(embeddings, targets)
    total.backward()
    return total, embeddings.grad


@pytest.mark.parametrize("name", [name for name in PAIR_NAMES if name != "quadruplet"])
def test_losses_of_pairs_take_sets_lists_and_masks(name):
    listed = [pair for pair in MASK.nonzero().tolist() if pair[0] < pair[1]]
    expected = value(name, Pairs.masked(MASK))
    drawn = getattr(build(name), "positives", None) == "one"  # labels alone make these draw
    for targets in (Pairs.listed(listed, rows=8), *(() if drawn else (SETS, LabelSets.of(SETS)))):
        for ours, theirs in zip(value(name, targets), expected, strict=True):
            assert torch.equal(ours, theirs)


@pytest.mark.parametrize("name", PAIR_NAMES)
def test_one_label_each_gives_the_very_same_value(name):
    if name == "quadruplet":  # it draws by the class numbers, which sets do not have
        with pytest.raises(UserError, match="third class"):
            value(name, [{label} for label in LABELS.tolist()])
        return
    for ours, theirs in zip(value(name, [{n} for n in LABELS.tolist()]), value(name, LABELS), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("name", CLASS_NAMES)
def test_losses_with_weights_per_class_refuse_sets(name):
    for labels in (SETS, LabelSets.of(SETS)):
        with pytest.raises(UserError, match="takes one label per sample, not several"):
            value(name, labels)


@pytest.mark.parametrize("name", [name for name in TAKES_TRIPLETS if name != "quadruplet"])
def test_explicit_triplets(name):
    chosen = Triplets.listed([(0, 1, 2), (0, 2, 1), (5, 0, 6)], rows=8)  # one of the first two is violated
    total, gradient = value(name, chosen)
    assert torch.isfinite(total)
    assert gradient[0].any()
    if name != "snr":  # whose regulariser moves the whole batch; else who is in no triplet stays
        assert not gradient[[3, 4, 7]].any()


@pytest.mark.parametrize("name", miners.names())
def test_miners_take_sets_and_choose_among_what_is_allowed(name):
    seeded = "generator" in settings_of(miners.MEMBERS[name])
    settings = {"generator": torch.Generator().manual_seed(3)} if seeded else {}
    mined = miners.build(name, **settings)(rows(8), SETS)
    pairs = Pairs.within(SETS)
    if isinstance(mined, Pairs):
        assert (pairs.positive | ~mined.positive).all()
        assert (pairs.negative | ~mined.negative).all()
        return
    valid = mined.valid
    assert torch.equal(valid, pairs.positive.any(1)) or name in ("random", "switched")
    anchor, positive, negative = mined.anchor[valid], mined.positive[valid], mined.negative[valid]
    switched = anchor == positive
    assert (pairs.positive[anchor, positive] | switched).all()
    assert (pairs.negative[anchor, negative] | switched).all()


def test_two_views_of_unlabelled_items_are_info_nce():
    """Against NT-Xent written as a loop over the views."""
    first, second = rows(4, seed=1, dtype=torch.float64), rows(4, seed=2, dtype=torch.float64)
    views = torch.nn.functional.normalize(torch.cat([first, second]))
    expected = []
    for a in range(8):
        p = (a + 4) % 8
        logits = {j: (views[a] @ views[j]).item() / 0.1 for j in range(8) if j != a}
        expected.append(torch.tensor(list(logits.values()), dtype=torch.float64).logsumexp(0).item() - logits[p])
    loss = losses.InfoNCE(temperature=0.1)
    assert abs(loss(torch.cat([first, second]), Pairs.of_views(4)).item() - sum(expected) / 8) < 1e-9
    unlabelled = LabelSets.of([None] * 4)[torch.arange(4).repeat(2)]
    assert torch.equal(
        loss(torch.cat([first, second]), unlabelled), loss(torch.cat([first, second]), Pairs.of_views(4))
    )
