"""Chunks change the memory, not the mathematics: one step in chunks is one plain step."""

import copy

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from lookalike import losses, samplers
from lookalike.errors import UserError
from lookalike.models import Conv4, Embedder
from lookalike.training import Loop, Objective, Schedule, optimisers

LABELS = torch.arange(6).repeat_interleave(8)
POINTS = torch.randn(48, 5, generator=torch.Generator().manual_seed(0))
IMAGES = torch.randn(48, 1, 16, 16, generator=torch.Generator().manual_seed(0))


def mlp():
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 4))


def loop(network, inputs, chunk, loss, **changes):
    goal = Objective(copy.deepcopy(loss))
    groups = [{"params": list(network.parameters()), "lr": 0.05}, *goal.parameter_groups(0.05)]
    batches = samplers.ClassBalanced(LABELS, batch_size=24, per_class=4)
    return Loop(
        network,
        goal,
        optimisers.build("sgd", groups),
        Schedule(steps=5),
        TensorDataset(inputs, LABELS),
        batches,
        chunk=chunk,
        **changes,
    )


def trained(network, inputs, chunk, loss, steps=3):
    trainer = loop(network, inputs, chunk, loss)
    torch.manual_seed(7)
    for _ in range(steps):
        last = trainer.advance()
    return trainer, last, torch.rand(1)


@pytest.mark.parametrize("chunk", [1, 5, 24, 100])
@pytest.mark.parametrize("loss", [losses.MultiSimilarity(), losses.ProxyAnchor(6, 4), losses.Triplet()])
def test_a_step_in_chunks_is_a_plain_step_with_dropout(loss, chunk):
    """One optimiser step per batch; afterwards torch's random numbers are where a plain step leaves them."""
    plain, whole, _ = trained(mlp(), POINTS, None, loss, steps=1)
    pieces, part, _ = trained(mlp(), POINTS, chunk, loss, steps=1)
    if chunk >= 24:  # else dropout is drawn chunk by chunk: another mask than one draw for all
        assert torch.allclose(whole.embeddings, part.embeddings, atol=1e-6)
        for one, other in zip(plain.network.parameters(), pieces.network.parameters(), strict=True):
            assert torch.allclose(one, other, atol=1e-6)
    reference = by_hand(loss, chunk)
    for one, other in zip(reference, pieces.network.parameters(), strict=True):
        assert torch.allclose(one, other.grad, atol=1e-6)


def by_hand(loss, chunk):
    """The gradient with every chunk's graph kept: the memory that chunks are there to save."""
    network, goal = mlp(), Objective(copy.deepcopy(loss))
    torch.manual_seed(7)
    rows = next(iter(samplers.ClassBalanced(LABELS, batch_size=24, per_class=4)))
    network.train()
    embeddings = torch.cat([network(part) for part in POINTS[rows].split(chunk)])
    sum(goal(embeddings, LABELS[rows], 0).values()).backward()
    return [parameter.grad for parameter in network.parameters()]


@pytest.mark.parametrize("chunk", [1, 7, 24])
def test_without_dropout_every_chunk_size_trains_the_same_network(chunk):
    frozen = Embedder(Conv4(channels=1), dim=4, batch_norm="frozen_statistics")
    plain, whole, _ = trained(copy.deepcopy(frozen), IMAGES, None, losses.MultiSimilarity())
    pieces, part, _ = trained(copy.deepcopy(frozen), IMAGES, chunk, losses.MultiSimilarity())
    assert torch.allclose(whole.terms["loss"], part.terms["loss"], atol=1e-6)
    assert torch.allclose(whole.gradient, part.gradient, atol=1e-6)
    for one, other in zip(plain.network.parameters(), pieces.network.parameters(), strict=True):
        assert torch.allclose(one, other, atol=1e-6)


def test_random_numbers_go_on_as_after_the_first_pass():
    """The replay must not be visible to whoever draws next."""
    network = mlp().train()
    trainer = loop(network, POINTS, 6, losses.MultiSimilarity())
    torch.manual_seed(1)
    trainer.advance()
    torch.manual_seed(1), [network.train()(part) for part in POINTS[:24].split(6)]
    expected = torch.rand(3)
    torch.manual_seed(1)
    again = loop(mlp(), POINTS, 6, losses.MultiSimilarity())
    again.advance()
    assert torch.equal(torch.rand(3), expected)


def test_statistics_over_the_batch_are_refused_in_one_line():
    trainer = loop(Embedder(Conv4(channels=1), dim=4), IMAGES, 8, losses.MultiSimilarity())
    with pytest.raises(UserError, match=r"train\.chunk.*batch normalisation.*frozen_statistics") as refused:
        trainer.advance()
    assert "\n" not in str(refused.value)


def test_a_chunk_of_nothing_is_refused():
    with pytest.raises(UserError, match="at least one image"):
        loop(mlp(), POINTS, 0, losses.MultiSimilarity())
