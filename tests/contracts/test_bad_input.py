"""What a user sees on bad input: one line that says what is wrong and what to do (the shape hook is off here)."""

import pytest
import torch

from lookalike import losses, miners
from lookalike.errors import UserError
from lookalike.targets import Classes, Pairs, Triplets
from lookalike.training.memory import CrossBatchMemory, remembered
from tests.contracts.catalogue import CLASS_NAMES, NAMES, PAIR_NAMES, TAKES_TRIPLETS, build, mined, rows

pytestmark = pytest.mark.plain

LABELS = torch.tensor([0, 0, 1, 1])


def refused(match, call, *arguments, **settings):
    with pytest.raises(UserError, match=match) as caught:
        call(*arguments, **settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_embeddings_and_labels_that_do_not_fit(name):
    loss = build(name)
    refused("^3 labels for 4 embeddings", loss, rows(4), LABELS[:3])
    refused(r"^embeddings must be a matrix n × d, not of shape \(4,\)", loss, rows(4)[:, 0], LABELS)
    refused(r"^embeddings must be a matrix n × d, not of shape \(4, 6, 1\)", loss, rows(4)[..., None], LABELS)
    refused(r"^embeddings must be floating point, not torch.int64", loss, rows(4).long(), LABELS)
    refused(r"^embeddings must be a torch tensor, not ndarray", loss, rows(4).numpy(), LABELS)
    refused(r"^embeddings must be a torch tensor, not list", loss, rows(4).tolist(), LABELS)
    refused(r"^embeddings must be a dense tensor: call .to_dense\(\)", loss, rows(4).to_sparse(), LABELS)
    refused(r"^labels must be integers, not torch.float32: .*long", loss, rows(4), LABELS.float())
    refused(r"integers, not torch.bool", loss, rows(4), LABELS.bool())
    refused(r"^labels must be a vector .* not of shape \(4, 1\)", loss, rows(4), LABELS[:, None])
    refused(r"^labels must be a sequence with one value per row, not NoneType", loss, rows(4), None)
    refused(r"^labels must be a sequence with one value per row, not one string", loss, rows(4), "0011")
    refused(r"^labels must be integers or names, not 0.5", loss, rows(4), [0, 0, 0.5, 1])
    refused(r"^labels must be integers or names, not nan", loss, rows(4), LABELS.float().mul(torch.nan).numpy())


@pytest.mark.parametrize("name", [name for name in NAMES if name not in TAKES_TRIPLETS])
def test_triplets_to_a_loss_that_takes_none(name):
    refused("^this loss takes labels or (Pairs|Classes), not Triplets", build(name), rows(4), mined(rows(4), LABELS))


@pytest.mark.parametrize("name", PAIR_NAMES)
def test_classes_to_a_pair_loss(name):
    refused("takes labels or .*not Classes", build(name), rows(4), Classes(LABELS))


@pytest.mark.parametrize("name", CLASS_NAMES)
def test_what_a_class_loss_refuses(name):
    loss = build(name)
    refused("^labels run from 0 to 4, this loss knows the classes 0 to 3", loss, rows(2), torch.tensor([0, 4]))
    refused("^labels run from -1 to 2", loss, rows(2), torch.tensor([-1, 2]))
    refused("^embeddings have 5 dimensions, this loss was built with dim=6", loss, rows(4)[:, :5], LABELS)
    refused("takes labels or Classes, not Pairs", loss, rows(4), Pairs.within(LABELS))
    refused("^labels must be integers here, not str: number the classes of all", loss, rows(2), ["owl", "hen"])
    refused("^classes must be at least 1, not 0", losses.build, name, classes=0, dim=4)
    refused("^dim must be at least 1, not 0", losses.build, name, classes=3, dim=0)
    losses.build(name, classes=1, dim=1)


@pytest.mark.parametrize("name", [name for name in PAIR_NAMES if name != "quadruplet"])
def test_pairs_and_candidates_that_do_not_fit(name):
    loss = build(name)
    refused(
        r"the positive mask is \(3, 3\), anchors × candidates are \(4, 4\)", loss, rows(4), Pairs.within(LABELS[:3])
    )
    pairs = Pairs.across(LABELS, torch.tensor([0, 1]))
    refused(r"the positive mask is \(4, 2\), anchors × candidates are \(4, 3\)", loss, rows(4), pairs, rows(3))
    refused("candidates have 5 dimensions, embeddings 6", loss, rows(4), pairs, rows(2)[:, :5])
    refused("candidates must be floating point", loss, rows(4), pairs, rows(2).long())
    refused("candidates must be a matrix", loss, rows(4), pairs, rows(2)[0])
    refused("labels alone do not say how candidates relate", loss, rows(4), LABELS, rows(4))
    floats = Pairs(pairs.positive.float(), pairs.negative)
    refused("the positive mask must be boolean, not torch.float32", loss, rows(4), floats, rows(2))


@pytest.mark.parametrize("name", TAKES_TRIPLETS)
def test_triplets_that_do_not_fit(name):
    good = mined(rows(4), LABELS)
    short = Triplets(good.anchor, good.positive[:2], good.negative, good.valid, good.labels)
    refused(r"four parts of Triplets must be equally long, not \[2, 4\]", build(name), rows(4), short)


def test_needs_that_targets_do_not_meet():
    good = mined(rows(4), LABELS)
    bare = Triplets(good.anchor, good.positive, good.negative, good.valid)
    refused("third class: give it labels, or Triplets with labels", build("quadruplet"), rows(4), bare)
    refused("quadruplet takes labels or Triplets, not Pairs", build("quadruplet"), rows(4), Pairs.within(LABELS))
    refused("boundary per class needs the anchors' classes", losses.Margin(classes=2), rows(4), bare)
    refused("labels run from 0 to 1, this loss knows the classes 0 to 0", losses.Margin(classes=1), rows(4), LABELS)
    refused("give both ids and candidate_ids, or neither", Pairs.across, LABELS, LABELS, LABELS)
    refused("3 ids for 4 labels", Pairs.across, LABELS, LABELS, LABELS[:3], LABELS)
    refused("3 candidate_ids for 4 candidate_labels", Pairs.across, LABELS, LABELS, LABELS, LABELS[:3])


OUT_OF_RANGE = [
    ("contrastive", {"positive_margin": -0.1}),
    ("contrastive", {"negative_margin": -0.1}),
    ("contrastive", {"similarity": "cosin"}),
    ("margin_contrastive", {"positive_margin": -0.1}),
    ("margin_contrastive", {"negative_margin": -0.1}),
    ("triplet", {"margin": -0.1}),
    ("triplet", {"similarity": "dot"}),
    ("lifted_structure", {"margin": -1.0}),
    ("generalised_lifted", {"similarity": "dot"}),
    ("generalised_lifted", {"reduction": "median"}),
    ("generalised_lifted", {"norm_weight": -1.0}),
    ("lifted_star", {"alpha": 0.0}),
    ("n_pair", {"positives": "all"}),
    ("n_pair", {"reading": "004"}),
    ("n_pair", {"norm_weight": -1.0}),
    ("angular", {"alpha": 90.0}),
    ("angular", {"alpha": 0.0}),
    ("angular", {"positives": "all"}),
    ("arcface", {"margin": 4.0}),
    ("arcface", {"scale": 0.0}),
    ("histogram", {"nodes": 1}),
    ("margin", {"margin": -0.1}),
    ("margin", {"reduction": "mean"}),
    ("binomial_deviance", {"beta": 0.0}),
    ("binomial_deviance", {"reduction": "none"}),
    ("multi_similarity", {"alpha": -2.0}),
    ("bin_lifted", {"alpha": 0.0}),
    ("bin_lifted", {"beta": 0.0}),
    ("nca", {"temperature": 0.0}),
    ("proxy_nca", {"scale": 0.0}),
    ("proxy_nca_pp", {"temperature": 0.0}),
    ("proxy_anchor", {"alpha": 0.0}),
    ("normalised_softmax", {"temperature": -1.0}),
    ("soft_triple", {"centres": 0}),
    ("soft_triple", {"temperature": 0.0}),
    ("hierarchical_proxy", {"every": 0}),
    ("hierarchical_proxy", {"coarse": 5}),
    ("quadruplet", {"margin": -1.0}),
    ("quadruplet", {"second_margin": -1.0}),
    ("snr", {"margin": -1.0}),
    ("fastap", {"bins": 0}),
    ("fastap", {"normalise": "none"}),
    ("top_k_precision", {"k": 0}),
    ("top_k_precision", {"margin": -0.1}),
    ("supcon", {"temperature": 0.0}),
    ("info_nce", {"temperature": 0.0}),
    ("circle", {"scale": 0.0}),
    ("cosface", {"margin": -0.1}),
    ("cosface", {"scale": 0.0}),
    ("smooth_ap", {"temperature": 0.0}),
    ("tuplet_margin", {"margin": 1.6}),
    ("tuplet_margin", {"scale": 0.0}),
    ("intra_pair_variance", {"positive_slack": -0.1}),
    ("intra_pair_variance", {"negative_slack": -0.1}),
    ("threshold_consistent_margin", {"positive_weight": -1.0}),
    ("threshold_consistent_margin", {"negative_weight": -1.0}),
    ("siglip", {"scale": 0.0}),
    ("ranked_list", {"margin": -0.1}),
    ("ranked_list", {"balance": 1.5}),
    ("ranked_list", {"positive_temperature": -1.0}),
    ("ranked_list", {"negative_temperature": -1.0}),
    ("sub_center_arcface", {"centres": 0}),
    ("sub_center_arcface", {"margin": 4.0}),
    ("sub_center_arcface", {"scale": 0.0}),
    ("sphereface", {"margin": 0}),
    ("sphereface", {"margin": 2.5}),
    ("sphereface", {"annealing": -1.0}),
    ("sphereface", {"scale": 0.0}),
    ("large_margin_softmax", {"margin": 1.5}),
    ("large_margin_softmax", {"annealing": -1.0}),
    ("large_margin_softmax", {"scale": 0.0}),
    ("instance", {"scale": 0.0}),
    ("pnp", {"variant": "Du"}),
    ("pnp", {"temperature": 0.0}),
    ("pnp", {"bound": 0.0}),
    ("pnp", {"power": 0.0}),
    ("recall_at_k", {"k": 0}),
    ("recall_at_k", {"temperature": 0.0}),
    ("recall_at_k", {"k_temperature": 0.0}),
    ("dynamic_soft_margin", {"nodes": 1}),
    ("centroid_triplet", {"margin": -0.1}),
    ("vicreg", {"invariance": -1.0}),
    ("vicreg", {"variance": -1.0}),
    ("vicreg", {"covariance": -1.0}),
    ("vicreg", {"epsilon": 0.0}),
    ("manifold", {"proxies": 0}),
    ("manifold", {"context_weight": -1.0}),
    ("manifold", {"alpha": 1.0}),
]


@pytest.mark.parametrize(("name", "settings"), OUT_OF_RANGE)
def test_settings_out_of_range(name, settings):
    """The message carries the wrong value."""
    (value,) = settings.values()
    refused(str(value), build, name, **settings)


def test_settings_just_within_their_range():
    for name, settings in OUT_OF_RANGE:
        for setting, value in settings.items():
            if isinstance(value, int | float) and value <= 0:
                build(name, **{setting: 1 if isinstance(value, int) else 0.01})


def test_settings_that_do_not_go_together():
    refused("squared goes with similarity='euclidean' only", losses.Triplet, similarity="cosine", squared=True)
    refused("normalise must be 'sphere' or 'ball'", losses.Histogram, normalise="none")
    refused("classes must be at least 1, not 0", losses.Margin, classes=0)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("fastap", "histogram")])
def test_unknown_geometry(name):
    refused("^unknown geometry 'spere': did you mean 'sphere'", build, name, normalise="spere")


def test_miners():
    for name in miners.names():
        miner = miners.build(name)
        refused("^3 labels for 4 embeddings", miner, rows(4), LABELS[:3])
        refused("embeddings must be floating point", miner, rows(4).long(), LABELS)
        refused("embeddings must be a torch tensor, not ndarray", miner, rows(4).numpy(), LABELS)
        refused("integers", miner, rows(4), LABELS.float())
        refused("takes labels or Pairs, not Triplets", miner, rows(4), mined(rows(4), LABELS))
    refused("margin must be at least 0", miners.SemiHard, margin=-1.0)
    refused("mode must be 'per_anchor' or 'roth', not 'all'", miners.Random, mode="all")
    refused("between 0 and 2, not 2.5", miners.DistanceWeighted, lower_cutoff=2.5)
    refused("upper_cutoff", miners.DistanceWeighted, upper_cutoff=0.0)
    refused("between 0 and 1, not 1.5", miners.Switched, probability=1.5)
    for compared in (miners.Hard, miners.SemiHard, miners.SoftHard, miners.MultiSimilarity):
        refused("unknown geometry 'spere'", compared, normalise="spere")


def test_memory():
    memory = CrossBatchMemory(capacity=4, dim=6)
    refused("^3 labels for 4 embeddings", memory.add, rows(4), LABELS[:3])
    refused("a batch of 5 does not fit a memory of 4", memory.add, rows(5), torch.arange(5))
    refused("embeddings have 5 dimensions, the memory 6", memory.add, rows(4)[:, :5], LABELS)
    refused("integers", remembered, build("nca"), memory, rows(4), LABELS.float())
    refused("capacity and dim must be at least 1, not 0 and 6", CrossBatchMemory, 0, 6)
