"""The objective against loops written by hand: miner, memory, regularisers, switched tuples."""

import pytest
import torch

from lookalike import losses, miners, regularisers
from lookalike.errors import UserError
from lookalike.targets import Pairs
from lookalike.training import Objective
from lookalike.training.memory import CrossBatchMemory
from tests.contracts.catalogue import NAMES, PAIR_NAMES

DIM = 5


def batch(seed, count=8, classes=3):
    draw = torch.Generator().manual_seed(seed)
    vectors = torch.randn(count, DIM, generator=draw, dtype=torch.float64)
    labels = torch.arange(count) % classes
    return vectors.requires_grad_(), labels


def test_without_anything_else_the_objective_is_the_loss():
    vectors, labels = batch(0)
    terms = Objective(losses.MultiSimilarity())(vectors, labels, 0)
    assert list(terms) == ["loss"]
    assert torch.equal(terms["loss"], losses.MultiSimilarity()(vectors, labels))


def test_the_miner_sees_no_gradient_and_chooses_the_tuples():
    seen = []

    def farthest(embeddings, labels):
        seen.append(embeddings.requires_grad)
        return miners.Hard()(embeddings, labels)

    vectors, labels = batch(1)
    terms = Objective(losses.Triplet(), farthest)(vectors, labels, 0)
    assert seen == [False]
    expected = losses.Triplet()(vectors, miners.Hard()(vectors.detach(), labels))
    assert torch.equal(terms["loss"], expected)
    terms["loss"].backward()
    assert vectors.grad.abs().sum() > 0


def by_hand(loss, vectors, labels, kept, capacity):
    """In loops: the batch is stored first, then every row meets all stored rows but its own copy [math A19]."""
    kept.extend((vector.detach(), int(label), object()) for vector, label in zip(vectors, labels, strict=True))
    own = [token for _, _, token in kept[-len(labels) :]]
    del kept[:-capacity]
    positive = torch.tensor(
        [[k == int(a) and t is not o for _, k, t in kept] for a, o in zip(labels, own, strict=True)]
    )
    negative = torch.tensor([[k != int(a) for _, k, _ in kept] for a in labels])
    candidates = torch.stack([vector for vector, _, _ in kept])
    pairs = Pairs(positive, negative, labels, torch.tensor([label for _, label, _ in kept]))
    return loss(vectors, pairs, candidates=candidates)


@pytest.mark.parametrize("name", ["margin_contrastive", "contrastive", "multi_similarity"])
def test_the_memory_starts_late_weighs_and_forgets_as_a_loop_says(name):
    loss, start, weight, capacity = losses.build(name), 2, 0.7, 20
    goal = Objective(loss, memory=CrossBatchMemory(capacity, DIM).double(), memory_weight=weight, memory_start=start)
    kept = []
    for step in range(7):
        vectors, labels = batch(step)
        terms = goal(vectors, labels, step)
        if step < start:
            assert list(terms) == ["loss"]
            assert len(goal.memory) == 0
            continue
        expected = weight * by_hand(loss, vectors, labels, kept, capacity)
        assert torch.allclose(terms["memory"], expected, rtol=1e-9)
        ours, theirs = (
            torch.autograd.grad(value, vectors, retain_graph=True)[0] for value in (terms["memory"], expected)
        )
        assert torch.allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in PAIR_NAMES if name != "quadruplet"])
def test_every_loss_without_class_weights_takes_a_memory(name):
    goal = Objective(losses.build(name), memory=CrossBatchMemory(24, DIM).double(), memory_start=0)
    for step in range(3):
        vectors, labels = batch(step)
        terms = goal(vectors, labels, step)
        sum(terms.values()).backward()
        assert terms["memory"].isfinite()
        assert vectors.grad.isfinite().all()


def test_what_cannot_use_a_memory_says_so():
    with pytest.raises(UserError, match="Switched works within one batch"):
        Objective(losses.Triplet(), miners.Switched(), memory=CrossBatchMemory(24, DIM))
    goal = Objective(losses.Quadruplet(), memory=CrossBatchMemory(24, DIM).double(), memory_start=0)
    with pytest.raises(UserError, match="sample them with a miner"):
        goal(*batch(0), 0)


@pytest.mark.parametrize("name", [name for name in miners.names() if name != "switched"])
def test_every_miner_mines_the_batch_and_the_memory(name):
    own = {} if name in ("hard", "multi_similarity") else {"generator": torch.Generator().manual_seed(0)}
    loss = losses.Contrastive()
    goal = Objective(loss, miners.build(name, **own), memory=CrossBatchMemory(24, DIM).double(), memory_start=0)
    for step in range(3):
        vectors, labels = batch(step)
        terms = goal(vectors, labels, step)
        assert set(terms) == {"loss", "memory"}
        assert all(value.isfinite() for value in terms.values())


def test_regularisers_are_terms_of_their_own():
    vectors, labels = batch(3)
    added = [regularisers.build(name) for name in regularisers.names()]
    terms = Objective(losses.Triplet(), regularisers=added)(vectors, labels, 0)
    assert len(terms) == 1 + len(added)
    for regulariser in added:
        assert torch.equal(terms[type(regulariser).__name__], regulariser(vectors))


def test_a_switched_tuple_pushes_a_positive_away():
    """[math D.2] with p = 1: every triplet is (a, a, p'), and the triplet loss the mean of [margin − d²(a, p')]₊."""
    vectors = torch.randn(6, DIM, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()
    labels = torch.tensor([0, 0, 1, 1, 2, 2])  # each has one positive only, so nothing is left to chance
    miner = miners.Switched(probability=1.0, generator=torch.Generator().manual_seed(1))
    terms = Objective(losses.Triplet(margin=3.0, squared=True), miner)(vectors, labels, 0)
    points = torch.nn.functional.normalize(vectors, dim=1)
    partner = torch.tensor([1, 0, 3, 2, 5, 4])
    expected = (3.0 - (points - points[partner]).square().sum(1)).clamp(min=0).mean()
    assert torch.allclose(terms["loss"], expected, rtol=1e-9)
    terms["loss"].backward()
    away = vectors.detach() - 1e-3 * vectors.grad
    apart = [torch.nn.functional.normalize(rows, dim=1) for rows in (vectors.detach(), away)]
    before, after = ((rows - rows[partner]).norm(dim=1).mean() for rows in apart)
    assert after > before


def test_rates_of_the_losses_own_parameters():
    for name in NAMES:
        loss = losses.build(name, classes=4, dim=DIM)
        groups = list(Objective(loss).parameter_groups(0.5))
        assert all(group["name"] == "loss" and group["lr"] > 0 for group in groups)
        owned = {id(parameter) for group in groups for parameter in group["params"]}
        assert owned == {id(parameter) for parameter in loss.parameters()}, name


def test_an_epoch_is_announced_to_a_loss_that_listens():
    loss = losses.HierarchicalProxy(classes=6, dim=DIM)
    before = {name: value.clone() for name, value in loss.state_dict().items()}
    Objective(loss).epoch_started(1)
    assert any(not torch.equal(before[name], value) for name, value in loss.state_dict().items())
    Objective(losses.Triplet()).epoch_started(1)  # does not listen


def test_a_memory_that_starts_before_the_run_is_refused():
    with pytest.raises(UserError, match="step 0 or later"):
        Objective(losses.Triplet(), memory_start=-1)
