"""Pair weights against the gradient they stand for, and table 1 of the Multi-Similarity paper [math I.1, I.2]."""

import pytest
import torch

from lookalike import losses
from lookalike.analysis import dependence, pair_gradients, pair_losses, pair_weights, similarity_types
from lookalike.errors import UserError
from lookalike.geometry import normalise

LABELS = torch.tensor([0, 0, 0, 1, 1, 2, 3, 3])
OUTSIDE = set(losses.names()) - set(pair_losses())
DRAWS = {"quadruplet"}
WITH_NORM = {"n_pair": {"norm_weight": 0.0}, "generalised_lifted": {"norm_weight": 0.0}}


def batch() -> torch.Tensor:
    return torch.randn(8, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(3)).requires_grad_()


@pytest.mark.parametrize("name", sorted(set(losses.names()) - OUTSIDE - DRAWS))
def test_constant_weights_move_the_embeddings_as_the_loss_does(name):
    loss = losses.build(name, classes=4, dim=6, normalise="sphere", **WITH_NORM.get(name, {}))
    embeddings = batch()
    (expected,) = torch.autograd.grad(loss(embeddings, LABELS), embeddings)
    gradients = pair_gradients(loss, embeddings, LABELS)
    unit = normalise(embeddings, "sphere")
    (result,) = torch.autograd.grad((gradients * (unit @ unit.T)).sum(), embeddings)
    torch.testing.assert_close(result, expected, atol=1e-9, rtol=1e-9)
    assert (pair_weights(loss, embeddings, LABELS).diagonal() == 0).all()


@pytest.mark.parametrize(
    "name",
    ["cosine_contrastive", "lifted_star", "nca", "histogram", "binomial_deviance", "bin_lifted", "multi_similarity"],
)
def test_positives_are_pulled_and_negatives_pushed(name):
    gradients = pair_gradients(losses.build(name), batch(), LABELS)
    same = LABELS[:, None] == LABELS
    assert (gradients[same] <= 0).all()
    assert (gradients[~same] >= 0).all()


def test_drawn_quadruplets_are_fixed_before_they_are_weighed():
    loss = losses.Quadruplet()
    embeddings = batch()
    quadruplets = loss.sampled(embeddings, LABELS)
    (expected,) = torch.autograd.grad(loss(embeddings, quadruplets), embeddings)
    gradients = pair_gradients(loss, embeddings, quadruplets)
    unit = normalise(embeddings, "sphere")
    (result,) = torch.autograd.grad((gradients * (unit @ unit.T)).sum(), embeddings)
    torch.testing.assert_close(result, expected, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("name", sorted(OUTSIDE))
def test_what_lies_outside_is_refused_by_name(name):
    loss = losses.build(name, classes=4, dim=6)
    with pytest.raises(UserError, match=type(loss).__name__):
        pair_weights(loss, batch(), LABELS)


def test_the_table_of_similarity_types_is_reproduced():
    expected = {
        "Contrastive": (1, 0, 0),
        "Binomial": (1, 0, 0),
        "Triplet": (0, 1, 0),
        "Histogram": (0, 1, 0),
        "N-pairs (as read in the paper)": (0, 0, 1),
        "N-pairs (as published)": (0, 1, 1),
        "Lifted": (0, 0, 1),
        "BinLifted": (1, 0, 1),
        "NCA": (0, 1, 1),
        "MS": (1, 1, 1),
        "MS weighting": (1, 0, 1),
        "MS mining": (0, 1, 0),
    }
    result = similarity_types(trials=80, generator=torch.Generator().manual_seed(0))
    assert {name: (row.itself, row.positives, row.negatives) for name, row in result.items()} == expected


def test_an_anchor_needs_rivals_to_be_examined():
    with pytest.raises(UserError, match="2 negatives"):
        dependence(losses.NCA(), negatives=1)
