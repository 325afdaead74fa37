"""Values of anchors, triplets and pairs alone: by equations, and their means against the loss."""

import pytest
import torch

from lookalike import losses
from lookalike.errors import UserError
from lookalike.losses import per_anchor, per_pair
from lookalike.targets import Classes, Pairs, Triplets
from tests.contracts.catalogue import CLASS_NAMES, NAMES, build, mined, rows
from tests.losses.cases import assert_same

# no mean over anchors: these compare distributions, both ends of a pair, or divide by the active terms of the batch
OTHERWISE = {
    "dynamic_soft_margin",
    "hierarchical_proxy",
    "histogram",
    "intra_pair_variance",
    "lifted_structure",
    "manifold",
    "margin",
    "proxy_anchor",
    "snr",
    "threshold_consistent_margin",
    "triplet",
    "vicreg",
}
LABELS = torch.arange(12) % 4
TRIPLETS = Triplets.listed([(0, 4, 1), (2, 6, 3), (5, 1, 0), (7, 3, 2)], rows=12)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "quadruplet"])
def test_the_mean_of_all_anchors_is_the_loss(name):
    x = rows(12, dtype=torch.float64).requires_grad_()
    loss = build(name).double()
    values = per_anchor(loss, x, LABELS)
    assert values.shape == (12,)
    if name not in OTHERWISE:
        assert_same(values.mean(), loss(x, LABELS), [x])


def test_weights_of_samples_are_one_product():
    """A sample of weight 2 counts as if it had been an anchor twice."""
    x, loss = rows(12, dtype=torch.float64), losses.SupCon()
    values, twice = per_anchor(loss, x, LABELS), torch.cat([torch.arange(12), torch.tensor([3])])
    weights = torch.ones(12, dtype=torch.float64).index_fill(0, torch.tensor([3]), 2.0)
    pairs = Pairs.within(LABELS)
    again = loss(x[twice], Pairs(pairs.positive[twice], pairs.negative[twice]), candidates=x)
    torch.testing.assert_close((weights * values).sum() / weights.sum(), again)


@pytest.mark.parametrize("name", ["triplet", "margin", "contrastive", "snr", "quadruplet"])
def test_triplets_one_by_one(name):
    x = rows(12, dtype=torch.float64)
    settings = {"sum_weight": 0.0} if name == "snr" else {}
    loss = build(name, **settings).double()
    drawn = mined(x, LABELS) if name == "quadruplet" else TRIPLETS
    values = per_anchor(loss, x, drawn)
    assert values.shape == drawn.anchor.shape
    if name in ("triplet", "contrastive"):
        torch.testing.assert_close(values.mean(), loss(x, drawn))
    if name == "triplet":
        a, p, n = torch.nn.functional.normalize(x)[torch.stack([TRIPLETS.anchor, TRIPLETS.positive, TRIPLETS.negative])]
        torch.testing.assert_close(values, ((a - p).norm(dim=1) - (a - n).norm(dim=1) + 0.2).relu())


def test_candidates_and_classes():
    x, others = rows(5, dtype=torch.float64), rows(7, seed=1, dtype=torch.float64)
    pairs = Pairs.across(LABELS[:5], LABELS[:7])
    loss = losses.MultiSimilarity()
    values = per_anchor(loss, x, pairs, candidates=others)
    torch.testing.assert_close(values.mean(), loss(x, pairs, candidates=others))
    softmax = build("arcface").double()
    assert torch.equal(per_anchor(softmax, x, Classes(LABELS[:5])), per_anchor(softmax, x, LABELS[:5]))
    assert per_anchor(loss, x[:0], LABELS[:0]).shape == (0,)


def test_pairs_one_by_one():
    x = rows(6, dtype=torch.float64).requires_grad_()
    labels = LABELS[:6]
    loss, pairs = losses.Contrastive(), Pairs.within(labels)
    values = per_pair(loss, x, labels)
    assert_same(values[pairs.positive].mean() + values[pairs.negative].mean(), loss(x, labels), [x])
    assert not values.diagonal().any()
    assert per_pair(loss, x[:1], labels[:1]).tolist() == [[0.0]]


def test_what_is_refused():
    x = rows(4)
    with pytest.raises(UserError, match=r"^ArcFace compares samples with classes and has no pairs$"):
        per_pair(build("arcface"), x, LABELS[:4])
    with pytest.raises(UserError, match=r"^3 labels for 4 embeddings"):
        per_anchor(build("arcface"), x, LABELS[:3])
    with pytest.raises(UserError, match=r"^3 labels for 4 embeddings"):
        per_anchor(losses.SupCon(), x, LABELS[:3])


@pytest.mark.parametrize("name", [name for name in CLASS_NAMES if name != "manifold"])
def test_logits_say_which_class_a_sample_is_nearest_to(name):
    """A sample that is the weight of a class is of that class; and where no margin is taken off, the loss is the cross
    entropy of the logits.
    """
    loss = build(name)
    centres = next(weight for weight in loss.parameters() if len(weight) % loss.logits(rows(2)).shape[1] == 0)
    x = 3 * centres.detach()[:: len(centres) // 4]
    with torch.no_grad():
        assert loss.logits(x).shape == (4, 4)
        assert loss.logits(x).argmax(1).tolist() == [0, 1, 2, 3]
    with pytest.raises(UserError, match=r"^embeddings have 3 dimensions, this loss was built with dim=6$"):
        loss.logits(torch.randn(4, 3))


MARGINS = ["arcface", "cosface", "sub_center_arcface", "sphereface", "large_margin_softmax", "soft_triple"]


@pytest.mark.parametrize("name", [*MARGINS, "normalised_softmax", "proxy_nca_pp", "instance"])
def test_without_a_margin_the_loss_is_the_cross_entropy_of_its_logits(name):
    margin = {} if name not in MARGINS else {"margin": 1 if name in ("sphereface", "large_margin_softmax") else 0.0}
    loss = build(name, **margin, **({"centre_weight": 0.0} if name == "soft_triple" else {})).double()
    x = rows(12, dtype=torch.float64)
    torch.testing.assert_close(
        torch.nn.functional.cross_entropy(loss.logits(x), LABELS), loss(x, LABELS), rtol=1e-6, atol=1e-6
    )
