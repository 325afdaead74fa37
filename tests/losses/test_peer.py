"""A second witness: pytorch-metric-learning 2.9.0 in float64.

Where it has the same formula, values and gradients agree; where it has not, the test says what it does instead.
"""

import math

import pytest
import torch

pytestmark = pytest.mark.filterwarnings("ignore")
pml = pytest.importorskip("pytorch_metric_learning", exc_type=ImportError)

from pytorch_metric_learning import distances, reducers  # noqa: E402
from pytorch_metric_learning import losses as theirs  # noqa: E402
from pytorch_metric_learning import miners as their_miners  # noqa: E402

from lookalike import losses, miners  # noqa: E402
from lookalike.targets import Pairs, Triplets  # noqa: E402
from lookalike.training.memory import CrossBatchMemory  # noqa: E402
from tests.losses.cases import assert_same, random_rows  # noqa: E402
from tests.losses.loops import listed, sides  # noqa: E402
from tests.losses.test_pnp import pnp  # noqa: E402
from tests.losses.test_smooth_ap import smooth_ap  # noqa: E402

FULL = torch.tensor([0, 1, 0, 2, 1, 0, 2, 2, 1, 0])  # every sample has a positive
LONELY = torch.tensor([0, 1, 0, 2, 1, 0, 2, 2, 1, 3])  # the last one has none
CLASSES, DIM = 4, 5


def rows():
    return random_rows(len(FULL), dim=DIM, seed=30)


def mean():
    return {"reducer": reducers.MeanReducer()}


SAME = {
    "contrastive": (losses.Contrastive(), lambda: theirs.ContrastiveLoss(**mean())),
    "margin_contrastive": (
        losses.MarginContrastive(negative_margin=1.0, normalise="sphere"),
        lambda: theirs.ContrastiveLoss(neg_margin=1.0),
    ),
    "triplet": (losses.Triplet(), lambda: theirs.TripletMarginLoss(margin=0.2)),
    "triplet smooth": (
        losses.Triplet(smooth=True),
        lambda: theirs.TripletMarginLoss(margin=0.2, smooth_loss=True),
    ),
    "triplet squared": (
        losses.Triplet(squared=True),
        lambda: theirs.TripletMarginLoss(margin=0.2, distance=distances.LpDistance(power=2)),
    ),
    "triplet cosine": (
        losses.Triplet(similarity="cosine", margin=0.1),
        lambda: theirs.TripletMarginLoss(margin=0.1, distance=distances.CosineSimilarity()),
    ),
    "snr": (
        losses.SNR(sum_weight=0.0),
        lambda: theirs.TripletMarginLoss(margin=0.2, distance=distances.SNRDistance()),
    ),
    "lifted_structure": (losses.LiftedStructure(), theirs.LiftedStructureLoss),
    "multi_similarity": (losses.MultiSimilarity(beta=50, mining_margin=None), theirs.MultiSimilarityLoss),
    "supcon": (losses.SupCon(), theirs.SupConLoss),
    "info_nce": (losses.InfoNCE(), lambda: theirs.NTXentLoss(temperature=0.1)),
    "circle": (losses.Circle(), lambda: theirs.CircleLoss(m=0.25)),
    "fastap": (losses.FastAP(), theirs.FastAPLoss),
    "histogram": (losses.Histogram(nodes=65), lambda: theirs.HistogramLoss(n_bins=64)),
    "tuplet_margin": (losses.TupletMargin(margin=math.radians(5.73)), theirs.TupletMarginLoss),
    "intra_pair_variance": (losses.IntraPairVariance(), theirs.IntraPairVarianceLoss),
    "threshold_consistent_margin": (losses.ThresholdConsistentMargin(), theirs.ThresholdConsistentMarginLoss),
}


@pytest.mark.parametrize("labels", [FULL, LONELY], ids=["full", "lonely"])
@pytest.mark.parametrize("name", SAME)
def test_same_formula(name, labels):
    ours, other = SAME[name]
    z = rows()
    # theirs takes softplus(x) = x from x = 20 on, and adds 1e-16 and the like: 2e-9 off
    assert_same(ours(z, labels), other()(z, labels), [z], tolerance=1e-8 if name == "circle" else 1e-9)


def test_multi_similarity_with_its_miner():
    z = rows()
    mined = their_miners.MultiSimilarityMiner(epsilon=0.1)(z, FULL)
    ours, other = losses.MultiSimilarity(beta=50), theirs.MultiSimilarityLoss()
    assert_same(ours(z, FULL), other(z, FULL, mined), [z])
    pairs = miners.MultiSimilarity()(z, FULL)
    assert set(map(tuple, pairs.positive.nonzero().tolist())) == set(
        zip(mined[0].tolist(), mined[1].tolist(), strict=True)
    )
    assert set(map(tuple, pairs.negative.nonzero().tolist())) == set(
        zip(mined[2].tolist(), mined[3].tolist(), strict=True)
    )


def test_tuplet_margin_of_equal_rows_is_no_number_to_theirs():
    """And positives nearer than its slack are driven apart by theirs: the printed cos(θ − β) falls again below β."""
    z = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([0, 0, 1])
    assert torch.autograd.grad(theirs.TupletMarginLoss()(z, labels), z)[0].isnan().any()
    assert torch.autograd.grad(losses.TupletMargin()(z, labels), z)[0].isfinite().all()
    near, nearer = (
        torch.tensor([[1.0, 0, 0], [math.cos(angle), math.sin(angle), 0], [0, 0, 1.0]], dtype=torch.float64)
        for angle in (0.05, 0.02)
    )
    gentle = theirs.TupletMarginLoss(scale=4)
    assert gentle(nearer, labels) > gentle(near, labels)


def test_ranked_list_adds_to_the_sum_of_its_weights_in_theirs():
    """1e-5 for every sample of the batch; and its weights are differentiated, where the paper holds them constant."""
    z = rows()
    ours, other = losses.RankedList(), theirs.RankedListLoss(margin=0.4, Tn=10)
    torch.testing.assert_close(ours(z, FULL), other(z, FULL), rtol=2e-4, atol=0)
    slopes = [torch.autograd.grad(loss(z, FULL), z)[0] for loss in (ours, other)]
    assert (slopes[0] - slopes[1]).abs().max() > 1e-2


def triplets():
    entries = listed(*sides(FULL.tolist()))[::3]
    columns = [torch.tensor(part) for part in zip(*entries, strict=True)]
    return Triplets(*columns, torch.ones(len(entries), dtype=torch.bool), FULL), tuple(columns)


@pytest.mark.parametrize("name", ["triplet", "triplet active", "margin"])
def test_lists_of_triplets(name):
    z, (ours, other) = rows(), triplets()
    if name == "triplet":
        assert_same(losses.Triplet()(z, ours), theirs.TripletMarginLoss(margin=0.2, **mean())(z, FULL, other), [z])
        return
    if name == "triplet active":
        active = losses.Triplet(reduction="active")
        assert_same(active(z, ours), theirs.TripletMarginLoss(margin=0.2)(z, FULL, other), [z])
        return
    margin, peer = losses.Margin(classes=3).double(), theirs.MarginLoss(num_classes=3, learn_beta=True).double()
    value, expected = margin(z, ours), peer(z, FULL, other)
    assert_same(value, expected, [z])
    gradients = [
        torch.autograd.grad(x, p)[0] for x, p in ((margin(z, ours), margin.boundary), (peer(z, FULL, other), peer.beta))
    ]
    torch.testing.assert_close(*gradients)


def test_histogram_loses_pairs_of_samples_without_positives_in_theirs():
    """Theirs takes its pairs from triplets: a negative pair whose both ends are the only ones of their class is in
    none. Without those pairs, ours is the same (but for the bins, which theirs finds in float32).
    """
    labels = torch.tensor([0, 0, 0, 0, 1, 1, 2, 3, 4])
    z = random_rows(len(labels), dim=DIM, seed=40)
    ours, other = losses.Histogram(nodes=65), theirs.HistogramLoss(n_bins=64)(z, labels)
    assert abs(ours(z, labels) - other) > 1e-4
    pairs = Pairs.within(labels)
    known = pairs.positive.any(1)
    in_triplets = Pairs(pairs.positive, pairs.negative & (known | known[:, None]))
    assert_same(ours(z, in_triplets), other, [z], tolerance=1e-7)


def their_values(loss, z, labels):
    """What their reducer would reduce, by the kind of its terms."""
    return {
        kind: (part["losses"], part["indices"])
        for kind, part in type(loss)(reducer=reducers.DoNothingReducer())(z, labels).items()
    }


@pytest.mark.parametrize(
    ("ours", "other"),
    [
        (losses.MultiSimilarity(beta=50, mining_margin=None), theirs.MultiSimilarityLoss),
        (losses.SupCon(), theirs.SupConLoss),
        (losses.FastAP(), theirs.FastAPLoss),
    ],
    ids=["multi_similarity", "supcon", "fastap"],
)
def test_values_of_anchors(ours, other):
    z = rows()
    ((values, _),) = their_values(other(), z, FULL).values()
    torch.testing.assert_close(losses.per_anchor(ours, z, FULL), values.flatten(), rtol=1e-9, atol=1e-9)
    weights = torch.tensor([1.0, 0.0, 3.0], dtype=torch.float64)
    by_class = other(reducer=reducers.ClassWeightedReducer(weights))(z, FULL)
    mine = (weights[FULL] * losses.per_anchor(ours, z, FULL)).mean()
    if values.dim() == 1:
        assert_same(mine, by_class, [z])
    else:  # multi-similarity: theirs multiplies a column of values by a row of weights, so that no weight finds its own
        torch.testing.assert_close(by_class, values.mean() * weights[FULL].mean())
        assert abs(by_class - mine) > 1e-3


def test_values_of_pairs():
    z = rows()
    values = losses.per_pair(losses.Contrastive(), z, FULL)
    for other, places in their_values(theirs.ContrastiveLoss(), z, FULL).values():
        torch.testing.assert_close(values[places], other, rtol=1e-9, atol=1e-9)


def test_nca_of_squared_distances_is_half_the_temperature():
    z = rows()
    assert_same(losses.NCA(temperature=0.5)(z, FULL), theirs.NCALoss()(z, FULL), [z])


def test_nca_differs_by_whom_it_divides():
    """Theirs drops a sample without positives from the mean, our divisor is m."""
    z = rows()
    assert_same(losses.NCA(temperature=0.5)(z, LONELY) * 10 / 9, theirs.NCALoss()(z, LONELY), [z])


def test_nca_of_the_hardest_is_dropped_by_theirs():
    """Probabilities that underflow are left out there: the loss falls as the batch gets harder. Ours stays exact."""
    z = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [1.0, 0.01], [1.0, -0.01]], dtype=torch.float64)
    labels = torch.tensor([0, 0, 1, 1])
    value, other = losses.NCA(temperature=1 / 800)(z, labels), theirs.NCALoss(softmax_scale=400)(z, labels)
    assert value > 400
    assert other < 1


def test_generalised_lifted_agrees_where_every_anchor_has_both():
    z = rows()
    ours, other = losses.GeneralisedLifted(norm_weight=0.0, normalise="sphere"), theirs.GeneralizedLiftedStructureLoss()
    assert_same(ours(z, FULL), other(z, FULL), [z])
    # without positives theirs takes the empty log-sum-exp as 0, we skip the anchor
    assert abs(ours(z, LONELY) - other(z, LONELY)) > 1e-3


def test_n_pair_of_one_pair_per_class():
    """Theirs pairs the first two of each class and compares with the other pairs' second ends: our rectangle. (Its
    default "dot product" normalises; the paper's does not.)
    """
    z = random_rows(6, dim=DIM, seed=31)
    labels = torch.tensor([0, 0, 1, 1, 2, 2])
    raw = distances.DotProductSimilarity(normalize_embeddings=False)
    ours, other = losses.NPair(norm_weight=0.0), theirs.NPairsLoss(distance=raw)
    anchors, candidates = z[::2], z[1::2]
    value = ours(anchors, Pairs.across(labels[::2], labels[1::2]), candidates=candidates)
    assert_same(value, other(z, labels), [z])


def test_angular_of_even_classes():
    """Theirs is the angular part alone, the mean over pairs (ours: over anchors; the same for classes of one size), and
    leaves the reference un-normalised: it needs unit vectors.
    """
    z = random_rows(6, dim=DIM, seed=31).detach()
    z = (z / z.norm(dim=1, keepdim=True)).requires_grad_()
    labels = torch.tensor([0, 0, 1, 1, 2, 2])
    part = losses.Angular(angular_weight=1.0, norm_weight=0.0)(z, labels) - losses.NPair(norm_weight=0.0)(z, labels)
    other = theirs.AngularLoss(alpha=45)(z, labels)
    torch.testing.assert_close(part, other, rtol=1e-9, atol=1e-9)
    long = theirs.AngularLoss(alpha=45)(3 * z, labels)
    assert abs(long - other) > 1e-2, "theirs changes with the length of its vectors"


CLASS_WEIGHTS = {
    "arcface": (
        {},
        "centres",
        lambda: theirs.ArcFaceLoss(CLASSES, DIM, margin=math.degrees(0.5), scale=16),
        "W",
    ),
    "cosface": ({}, "centres", lambda: theirs.CosFaceLoss(CLASSES, DIM, margin=0.35, scale=64), "W"),
    "normalised_softmax": ({}, "weights", lambda: theirs.NormalizedSoftmaxLoss(CLASSES, DIM), "W"),
    "proxy_anchor": ({}, "proxies", lambda: theirs.ProxyAnchorLoss(CLASSES, DIM), "proxies"),
    "proxy_nca_pp": ({"temperature": 0.5}, "proxies", lambda: theirs.ProxyNCALoss(CLASSES, DIM), "proxies"),
    "soft_triple": (
        {"centre_weight": 0.0, "scale": 20.0, "centres": 3},
        "centres",
        lambda: theirs.SoftTripleLoss(CLASSES, DIM, centers_per_class=3),
        "fc",
    ),
    "sub_center_arcface": (
        {},
        "centres",
        lambda: theirs.SubCenterArcFaceLoss(
            num_classes=CLASSES, embedding_size=DIM, margin=math.degrees(0.5), sub_centers=3
        ),
        "W",
    ),
    "sphereface": ({}, "weights", lambda: theirs.SphereFaceLoss(CLASSES, DIM), "W"),
    "large_margin_softmax": ({}, "weights", lambda: theirs.LargeMarginSoftmaxLoss(CLASSES, DIM), "W"),
}


THEIR_SCALE = {"proxy_anchor": 32.0, "soft_triple": 20.0}  # which is missing in their logits


@pytest.mark.parametrize("name", CLASS_WEIGHTS)
def test_same_formula_with_class_weights(name):
    settings, weight, build, other_weight = CLASS_WEIGHTS[name]
    ours, other = losses.build(name, classes=CLASSES, dim=DIM, **settings).double(), build().double()
    mine, their = getattr(ours, weight), getattr(other, other_weight)
    transposed = their.shape != mine.shape or other_weight in ("W", "fc")
    with torch.no_grad():
        mine.copy_(random_rows(len(mine), dim=DIM, seed=33))
        their.copy_(mine.T if transposed else mine)
    z = rows()
    assert_same(ours(z, LONELY), other(z, LONELY), [z])
    (gradient,) = torch.autograd.grad(ours(z, LONELY), mine)
    (expected,) = torch.autograd.grad(other(z, LONELY), their)
    torch.testing.assert_close(gradient, expected.T if transposed else expected, rtol=1e-9, atol=1e-9)
    if name == "proxy_nca_pp":
        assert ours.logits(z).argmax(1).tolist() == other.get_logits(z).argmin(1).tolist(), "theirs are distances"
    else:
        logits = THEIR_SCALE.get(name, 1.0) * other.get_logits(z)
        torch.testing.assert_close(ours.logits(z), logits, rtol=1e-9, atol=1e-9)


def test_p2s_grad_is_a_mean_over_classes_to_theirs():
    """And therefore 2/C of the paper's gradient; its weights are of unit length to 1e-7, by a step outside the graph:
    their gradient has a part along the weight, which ours has not.
    """
    ours, other = losses.P2SGrad(CLASSES, DIM).double(), theirs.P2SGradLoss(DIM, CLASSES).double()
    with torch.no_grad():
        other.weight.copy_(torch.nn.functional.normalize(ours.weights, dim=1).T)
    z = rows()
    assert_same(ours(z, FULL) * 2 / CLASSES, other(z, FULL), [z], tolerance=1e-6)
    slopes = [torch.autograd.grad(loss(z, FULL), w)[0] for loss, w in ((ours, ours.weights), (other, other.weight))]
    assert (slopes[0] * ours.weights).sum(1).abs().max() < 1e-12
    assert (slopes[1] * other.weight).sum(0).abs().max() > 1e-3


def test_instance_weights_are_the_rows_of_the_batch_to_theirs():
    """With all labels different and our weights put there, both agree. With classes theirs compares with wrong rows: of
    two classes far apart, each of equal rows, it finds half of the samples wrong.
    """
    z = rows()
    ours = losses.Instance(len(z), DIM, scale=64.0, normalise="sphere").double()
    with torch.no_grad():
        ours.weights.copy_(z)
    everyone = torch.arange(len(z))
    torch.testing.assert_close(ours(z, everyone), theirs.InstanceLoss()(z, everyone), rtol=1e-9, atol=1e-9)
    perfect = torch.eye(2, dtype=torch.float64)[[0, 0, 1, 1]]
    assert theirs.InstanceLoss()(perfect, torch.tensor([0, 0, 1, 1])) > 10


def test_proxy_nca_is_another_formula():
    """Theirs has the own proxy in the denominator (that is ProxyNCA++), Movshovitz-Attias et al. have not."""
    ours, other = losses.ProxyNCA(CLASSES, DIM, scale=1.0).double(), theirs.ProxyNCALoss(CLASSES, DIM).double()
    with torch.no_grad():
        other.proxies.copy_(ours.proxies)
    z = rows()
    assert ours(z, FULL) < other(z, FULL) - 1e-3


def test_smooth_ap_counts_the_query_as_its_own_hit():
    """Theirs ranks the query in its own list, as a positive with similarity 1; and only contiguous classes as many as
    their size come out as that. Ours leaves it out.
    """
    z, labels = random_rows(9, dim=DIM, seed=34), [0, 0, 0, 1, 1, 1, 2, 2, 2]
    other = theirs.SmoothAPLoss(temperature=0.1)(z, torch.tensor(labels))
    positives, negatives = sides(labels)
    with_itself = [[i, *side] for i, side in enumerate(positives)]
    counted = smooth_ap(z, z, with_itself, negatives, temperature=0.1)
    torch.testing.assert_close(other, counted, rtol=1e-6, atol=1e-6, check_dtype=False)
    assert abs(losses.SmoothAP(temperature=0.1)(z, torch.tensor(labels)) - other) > 1e-3


@pytest.mark.parametrize("variant", ["O", "Iu", "Ds"])
def test_pnp_counts_the_query_as_its_own_hit(variant):
    """As in SmoothAP: theirs has the query among its positives, with similarity 1. The rest is the same formula."""
    z, labels = rows(), FULL.tolist()
    other = theirs.PNPLoss(variant=variant, anneal=0.1)(z, FULL)
    positives, negatives = sides(labels)
    with_itself = [[i, *side] for i, side in enumerate(positives)]
    counted = pnp(z, z, with_itself, negatives, variant, temperature=0.1)
    assert_same(other, counted, [z], tolerance=1e-7)
    assert abs(losses.PNP(variant, temperature=0.1)(z, FULL) - other) > 1e-3


def test_dynamic_soft_margin_of_pairs():
    """Two views of a few items, without labels: theirs is the paper's hardest negative of either end, as ours always is
    (with labels it takes all triplets). Its weights carry a graph of their own, so only values can agree.
    """
    anchors, views = (random_rows(8, dim=DIM, seed=seed) for seed in (36, 37))
    views = anchors.detach() + 0.3 * views
    items = torch.arange(8)
    ours, other = losses.DynamicSoftMargin(nodes=11), theirs.DynamicSoftMarginLoss(num_bins=10)
    value = ours(anchors, Pairs.across(items, items), candidates=views)
    torch.testing.assert_close(value, other(anchors, None, ref_emb=views), rtol=1e-6, atol=1e-6, check_dtype=False)


def test_dynamic_soft_margin_remembers_in_theirs():
    """With labels theirs takes all triplets instead of the hardest, and its histogram is a running one that keeps the
    graph of the batch before: a second backward pass fails.
    """
    z, other = rows(), theirs.DynamicSoftMarginLoss()
    first = other(z, FULL)
    assert abs(first - losses.DynamicSoftMargin(nodes=11)(z, FULL)) > 1e-2
    first.backward()
    with pytest.raises(RuntimeError, match="second time"):
        other(rows(), FULL).backward()
    again = losses.DynamicSoftMargin(nodes=11)
    assert again(z, FULL) == again(z, FULL)


def test_vicreg_of_two_views():
    views = [random_rows(9, dim=DIM, seed=seed) for seed in (38, 39)]
    items = torch.arange(9)
    value = losses.VICReg()(views[0], Pairs.across(items, items), candidates=views[1])
    # theirs changes a squared covariance in place, which its own backward pass needs
    torch.testing.assert_close(value, theirs.VICRegLoss()(views[0], ref_emb=views[1]), rtol=1e-9, atol=1e-9)


def test_manifold_of_one_proxy_per_class():
    ours, other = losses.Manifold(CLASSES, DIM).double(), theirs.ManifoldLoss(DIM, K=CLASSES).double()
    with torch.no_grad():
        other.proxies.copy_(ours.proxies)
    z = rows()
    # theirs inverts in float32
    value, expected = ours(z, FULL), other(z, indices_tuple=FULL)
    torch.testing.assert_close(value, expected.squeeze(), rtol=1e-5, atol=1e-6)
    slopes = [torch.autograd.grad(x, z)[0] for x in (value, expected)]
    torch.testing.assert_close(*slopes, rtol=1e-3, atol=1e-5)


def test_equal_copies_as_reference_are_self_pairs_to_theirs():
    """Theirs knows a self pair by object identity: a clone of the batch changes the value. Ours goes by the masks."""
    z = rows()
    within, across = losses.InfoNCE(), theirs.NTXentLoss(temperature=0.1)
    assert abs(across(z, FULL, ref_emb=z.clone(), ref_labels=FULL.clone()) - across(z, FULL)) > 1e-3
    torch.testing.assert_close(within(z, Pairs.within(FULL), candidates=z.clone()), within(z, FULL))


def test_a_memory_of_keys():
    """Rows that are put in and rows that are compared: their `enqueue_mask`. Emptied, both begin again."""
    memory, other = CrossBatchMemory(16, DIM).double(), theirs.CrossBatchMemory(theirs.SupConLoss(), DIM, 16)
    loss, keys = losses.SupCon(), torch.arange(len(FULL)) >= 5
    for seed in range(3):
        z = random_rows(len(FULL), dim=DIM, seed=seed)
        memory.add(z[keys], FULL[keys])
        ours = loss(z[~keys], memory.pairs(FULL[~keys]), candidates=memory.embeddings)
        assert_same(ours, other(z, FULL, enqueue_mask=keys), [z])
        if seed == 1:
            memory.reset()
            other.reset_queue()


def test_one_positive_and_one_negative_pair_is_0_to_theirs():
    z = random_rows(3, dim=DIM, seed=35)
    anchors, labels = z[:1], torch.tensor([0])
    columns, column_labels = z[1:], torch.tensor([0, 1])
    other = theirs.MultiSimilarityLoss()(anchors, labels, ref_emb=columns, ref_labels=column_labels)
    value = losses.MultiSimilarity(mining_margin=None)(anchors, Pairs.across(labels, column_labels), candidates=columns)
    assert other == 0
    assert value > 0


def test_distance_weighted_near_duplicate_starves_theirs():
    """Theirs subtracts the largest log-weight of the whole batch: one near-duplicate leaves most anchors without."""
    generator = torch.Generator().manual_seed(5)
    batch = torch.randn(64, 512, generator=generator)
    batch[1] = batch[0] + 1e-3 * batch[1]
    labels = torch.arange(64) % 16
    torch.manual_seed(0)
    anchors, _, _ = their_miners.DistanceWeightedMiner(nonzero_loss_cutoff=2.0)(batch, labels)
    assert len(set(anchors.tolist())) < 10
    assert miners.DistanceWeighted(generator=generator)(batch, labels).valid.all()
