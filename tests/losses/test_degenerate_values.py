"""What a batch without negatives, or without positives, is worth, as plain numbers [math A21]."""

import pytest
import torch

from lookalike import losses
from tests.losses.cases import random_rows

ZERO_WITHOUT_NEGATIVES = (
    "triplet margin quadruplet snr lifted_structure generalised_lifted lifted_star histogram multi_similarity n_pair "
    "angular nca fastap top_k_precision info_nce circle smooth_ap tuplet_margin pnp dynamic_soft_margin "
    "centroid_triplet"
)
ZERO_WITHOUT_POSITIVES = (
    "nca fastap top_k_precision histogram multi_similarity triplet margin lifted_structure lifted_star "
    "generalised_lifted n_pair angular supcon info_nce circle smooth_ap quadruplet snr tuplet_margin "
    "pnp recall_at_k dynamic_soft_margin centroid_triplet"
)
WITHOUT_REGULARISER = {
    "generalised_lifted": {"norm_weight": 0.0},
    "n_pair": {"norm_weight": 0.0},
    "angular": {"norm_weight": 0.0},
    "snr": {"sum_weight": 0.0},
}


def worth(name, labels, **settings):
    z = random_rows(len(labels), seed=6)
    return losses.build(name, **settings)(z, torch.tensor(labels)), z


@pytest.mark.parametrize("name", ZERO_WITHOUT_NEGATIVES.split())
def test_zero_without_negatives(name):
    value, z = worth(name, [2, 2, 2, 2], **WITHOUT_REGULARISER.get(name, {}))
    assert abs(value.item()) < 1e-12
    assert torch.autograd.grad(value, z)[0].abs().max() < 1e-9, "and it stays attached to the graph"


@pytest.mark.parametrize("name", ZERO_WITHOUT_POSITIVES.split())
def test_zero_without_positives(name):
    value, z = worth(name, [2, 3, 4, 5], **WITHOUT_REGULARISER.get(name, {}))
    assert value.item() == 0
    assert torch.autograd.grad(value, z)[0].abs().max() == 0


@pytest.mark.parametrize("labels", [[2, 2, 2, 2], [2, 3, 4, 5]])
@pytest.mark.parametrize("name", WITHOUT_REGULARISER)
def test_regularisers_stay(name, labels):
    value, z = worth(name, labels)
    units = z / z.norm(dim=1, keepdim=True)
    regulariser = units.sum(1).abs().mean() if name == "snr" else z.norm(dim=1).mean()
    torch.testing.assert_close(value, 0.005 * regulariser)


def test_halves_that_stand_alone():
    """Contrastive, C1, C2, binomial deviance: the positive part alone without negatives and the other way round."""
    z = random_rows(4, seed=6)
    S = (z / z.norm(dim=1, keepdim=True)) @ (z / z.norm(dim=1, keepdim=True)).T
    off = ~torch.eye(4, dtype=torch.bool)
    d = (2 - 2 * S[off]).sqrt()
    same, different = torch.tensor([2, 2, 2, 2]), torch.tensor([2, 3, 4, 5])
    expected = {
        "contrastive": (d.mean(), (1 - d).relu().mean()),
        "cosine_contrastive": ((1 - S[off]).sum() / 4, (S[off] - 0.5).relu().sum() / 4),
        "margin_contrastive": (d.mean(), None),
        "binomial_deviance": ((2 * (0.5 - S[off])).exp().log1p().mean(), (50 * (S[off] - 0.5)).exp().log1p().mean()),
    }
    for name, (pull, push) in expected.items():
        loss = losses.build(name, normalise="sphere")
        torch.testing.assert_close(loss(z, same), pull, msg=name)
        if push is not None:
            torch.testing.assert_close(loss(z, different), push, msg=name)
    hinges = (0.3841 - d).relu()
    push = hinges[hinges > 0].mean() if (hinges > 0).any() else torch.zeros(())
    value = losses.MarginContrastive(normalise="sphere")(z, different)
    torch.testing.assert_close(value, push, check_dtype=False)


def test_multi_similarity_without_mining_keeps_each_half():
    z = random_rows(3, seed=6)
    value = losses.MultiSimilarity(mining_margin=None)(z, torch.tensor([1, 1, 1]))
    assert value.item() > 0.1


def test_supcon_without_negatives_keeps_its_attraction():
    z = random_rows(3, seed=6)
    value = losses.SupCon()(z, torch.tensor([1, 1, 1]))
    assert torch.autograd.grad(value, z)[0].abs().max() > 1e-3


def test_anchors_without_partners_change_nothing_but_the_divisor():
    """A stranger far from everyone (orthogonal, so that it repels no one) leaves the sums of the others alone."""
    base = random_rows(4, dim=4, seed=6).detach()
    rows = torch.cat([base, torch.zeros(4, 1)], 1)
    stranger = torch.cat([rows, torch.tensor([[0.0] * 4 + [1.0]], dtype=torch.float64)])
    few, more = torch.tensor([0, 0, 1, 1]), torch.tensor([0, 0, 1, 1, 9])
    # mean over all anchors: 4 before, 5 after; the cosine 0 to the stranger is below every threshold
    loss = losses.build("cosine_contrastive")
    torch.testing.assert_close(loss(rows, few) * 4, loss(stranger, more) * 5)
    # means over active terms: the same
    loss = losses.build("margin_contrastive")
    torch.testing.assert_close(loss(rows, few), loss(stranger, more))
