"""Manifold mixup [math D.3]: what is mixed, where, and which labels it counts for."""

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from lookalike import losses, miners, samplers
from lookalike.errors import UserError
from lookalike.models import Conv4, Embedder, ResNet18
from lookalike.training import Loop, Objective, Schedule, optimisers
from lookalike.training.mixup import Mixer, Mixture, Mixup, mixer

LABELS = torch.arange(6).repeat_interleave(4)
IMAGES = torch.randn(24, 1, 16, 16, generator=torch.Generator().manual_seed(0))


def embedder():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network_with_stages = Embedder(Conv4(channels=1), dim=4, batch_norm="frozen_statistics")
    network_with_stages.head[-1].weight.data *= 100  # an untrained network says nearly the same of all images
    return network_with_stages


def drawing(seed=0, places=("input", "block1", "block4")):
    return Mixer(2.0, places, torch.Generator().manual_seed(seed))


def test_draws_follow_the_distribution_and_the_generator_alone():
    torch.manual_seed(1)
    source = drawing()
    drawn = [source.draw(8) for _ in range(3000)]
    torch.manual_seed(2)
    again = drawing()
    assert [again.draw(8).share for _ in range(50)] == [mixture.share for mixture in drawn[:50]]
    shares = torch.tensor([mixture.share for mixture in drawn])
    assert abs(shares.mean() - 0.5) < 0.015  # Beta(2, 2): mean 1/2, variance 1/20
    assert abs(shares.var() - 1 / 20) < 0.005
    for place in source.places:
        assert abs(sum(mixture.place == place for mixture in drawn) / 3000 - 1 / 3) < 0.04
    assert all(sorted(mixture.partner.tolist()) == list(range(8)) for mixture in drawn[:20])


@pytest.mark.parametrize("place", ["input", "block2", "block4"])
def test_a_mixed_batch_is_what_a_plain_loop_makes_of_it(place):
    network, images = embedder().eval(), IMAGES[:6]
    partner = torch.tensor([3, 4, 5, 0, 2, 1])
    given = Mixture(place, 0.3, partner).embed(network, images)
    expected = []
    for row, other in enumerate(partner.tolist()):
        one, two = images[row : row + 1], images[other : other + 1]
        if place == "input":
            one = 0.3 * one + 0.7 * two
        for number in range(1, 5):
            block = network.backbone.get_submodule(f"block{number}")
            one, two = block(one), block(two)
            if place == f"block{number}":
                one = 0.3 * one + 0.7 * two
        expected.append(network.head(one.mean((2, 3))))
    assert torch.allclose(given, torch.cat(expected), atol=1e-6)


def loop(loss, miner=None, seed=0, optimiser="sgd", **changes):
    network, goal = embedder(), Objective(loss, miner)
    groups = [{"params": list(network.parameters()), "lr": 0.01}]
    if optimiser != "still":  # then the class weights stay as they were
        groups += goal.parameter_groups(0.01)
    batches = samplers.ClassBalanced(LABELS, batch_size=12, per_class=3)
    settings = {"mixer": drawing(seed)} | changes
    return Loop(
        network,
        goal,
        optimisers.build("sgd", groups),
        Schedule(steps=9),
        TensorDataset(IMAGES, LABELS),
        batches,
        **settings,
    )


@pytest.mark.parametrize("name", ["normalised_softmax", "contrastive", "arcface"])
def test_the_objective_is_taken_on_both_sets_of_labels(name):
    free = {"normalise": "none", "negative_margin": 5.0} if name == "contrastive" else {}
    loss = losses.build(name, classes=6, dim=4, **free)
    network_with_stages = loop(loss, optimiser="still")
    trained = network_with_stages.advance()
    drawn = drawing().draw(12)
    first, second = trained.labels, trained.labels[drawn.partner]
    with torch.no_grad():
        one, two = loss(trained.embeddings, first), loss(trained.embeddings, second)
    assert not torch.allclose(one, two)
    assert torch.allclose(trained.terms["loss"], drawn.share * one + (1 - drawn.share) * two, atol=1e-6)


def test_tuples_are_mined_anew_for_each_set():
    seen = []

    def miner(embeddings, labels):
        seen.append(labels)
        return miners.Hard()(embeddings, labels)

    trained = loop(losses.Triplet(), miner).advance()
    assert len(seen) == 2
    assert torch.equal(seen[0], trained.labels)
    assert torch.equal(seen[1], trained.labels[drawing().draw(12).partner])


def test_mixing_within_one_class_counts_once():
    labels = torch.tensor([0, 0, 1, 1])
    sets = Mixture("input", 0.25, torch.tensor([1, 0, 3, 2])).label_sets(labels)
    assert [weight for weight, _ in sets] == [0.25, 0.75]
    assert all(torch.equal(part, labels) for _, part in sets)


def test_it_trains_and_resumes_bit_by_bit():
    def fresh():
        generator = torch.Generator().manual_seed(5)
        return loop(
            losses.MultiSimilarity(), mixer=Mixer(2.0, ("input", "block3"), generator), generators={"mixup": generator}
        )

    straight = fresh()
    for _ in range(4):
        straight.advance()
    first = fresh()
    first.advance(), first.advance()
    second = fresh()
    second.load_state_dict(first.state_dict())
    second.advance(), second.advance()
    for one, other in zip(straight.network.parameters(), second.network.parameters(), strict=True):
        assert torch.equal(one, other)


def test_places_are_the_input_and_the_stages_after_the_stem():
    generator = torch.Generator()
    assert mixer(Mixup(), embedder(), generator).places == ("input", "block1", "block2", "block3", "block4")
    resnet = Embedder(ResNet18(), dim=4)
    assert mixer(Mixup(), resnet, generator).places == ("input", "layer1", "layer2", "layer3", "layer4")
    assert mixer(Mixup(places=("block2",)), embedder(), generator).places == ("block2",)


def test_what_cannot_be_is_refused_in_a_line():
    with pytest.raises(UserError, match="did you mean 'block2'"):
        mixer(Mixup(places=("blok2",)), embedder(), torch.Generator())
    with pytest.raises(UserError, match="network with stages"):
        mixer(Mixup(), nn.Linear(2, 2), torch.Generator())
    with pytest.raises(UserError, match=r"mixup\.alpha must be positive"):
        Mixup(alpha=0)
    with pytest.raises(UserError, match=r"leave out mixup or train\.chunk"):
        loop(losses.MultiSimilarity(), chunk=4)
