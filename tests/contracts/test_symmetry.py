"""What a loss does not depend on: the order of the batch, and by which argument the candidates come in."""

import pytest
import torch

from lookalike.targets import Classes, Pairs
from tests.contracts.catalogue import CLASS_NAMES, NAMES, PAIR_NAMES, SAMPLED, build, mined, rows

LABELS = torch.tensor([0, 0, 1, 1, 2, 2, 3, 0, 1])
EMBEDDINGS = rows(9, dtype=torch.float64)


def graded(loss, embeddings, targets, **more):
    embeddings = embeddings.clone().requires_grad_()
    value = loss(embeddings, targets, **more)
    return value, torch.autograd.grad(value, embeddings)[0]


@pytest.mark.parametrize("name", [name for name in NAMES if name not in SAMPLED])
def test_order_of_the_batch_is_irrelevant(name):
    loss = build(name).double()
    order = torch.randperm(9, generator=torch.Generator().manual_seed(1))
    value, gradient = graded(loss, EMBEDDINGS, LABELS)
    shuffled, shuffled_gradient = graded(loss, EMBEDDINGS[order], LABELS[order])
    torch.testing.assert_close(shuffled, value, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(shuffled_gradient, gradient[order], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", PAIR_NAMES)
def test_the_batch_as_its_own_candidates(name):
    """Candidates = batch with Pairs.within: the same value, and the two gradients add up to the one."""
    loss = build(name).double()
    targets = mined(EMBEDDINGS, LABELS) if name in SAMPLED else Pairs.within(LABELS)
    value, gradient = graded(build(name).double(), EMBEDDINGS, targets)
    anchors, candidates = (EMBEDDINGS.clone().requires_grad_() for _ in range(2))
    widened = loss(anchors, targets, candidates=candidates)
    torch.testing.assert_close(widened, value, rtol=1e-10, atol=1e-12)
    total = sum(torch.autograd.grad(widened, (anchors, candidates)))
    torch.testing.assert_close(total, gradient, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", [name for name in PAIR_NAMES if name not in SAMPLED])
def test_labels_are_the_pairs_within(name):
    loss = build(name).double()
    assert loss(EMBEDDINGS, LABELS) == loss(EMBEDDINGS, Pairs.within(LABELS))


@pytest.mark.parametrize("name", CLASS_NAMES)
def test_labels_are_the_classes(name):
    loss = build(name).double()
    assert loss(EMBEDDINGS, LABELS) == loss(EMBEDDINGS, Classes(LABELS))


@pytest.mark.parametrize("name", [name for name in PAIR_NAMES if name not in SAMPLED])
def test_candidates_that_play_no_part_change_nothing(name):
    """A memory that is half empty: more columns, in neither mask."""
    loss = build(name).double()
    pairs = Pairs.within(LABELS)
    nobody = torch.zeros(9, 3, dtype=torch.bool)
    wider = Pairs(
        torch.cat([pairs.positive, nobody], 1),
        torch.cat([pairs.negative, nobody], 1),
        pairs.labels,
        torch.cat([LABELS, LABELS[:3]]),
    )
    candidates = torch.cat([EMBEDDINGS, torch.zeros(3, 6, dtype=torch.float64)])
    torch.testing.assert_close(
        loss(EMBEDDINGS, wider, candidates=candidates), loss(EMBEDDINGS, LABELS), rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize("name", [name for name in NAMES if name not in SAMPLED])
def test_a_second_call_gives_the_same(name):
    """No state is left behind by a call."""
    loss = build(name).double()
    before = {key: value.clone() for key, value in loss.state_dict().items()}
    assert loss(EMBEDDINGS, LABELS) == loss(EMBEDDINGS, LABELS)
    assert all(torch.equal(before[key], value) for key, value in loss.state_dict().items())
