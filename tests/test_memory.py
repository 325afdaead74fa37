"""Cross-batch memory: a ring against a Python list, its state in the middle of a turn, and the loss written out."""

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookalike import losses, miners
from lookalike.errors import UserError
from lookalike.targets import Pairs
from lookalike.training.memory import CrossBatchMemory, remembered

PAIR_LOSSES = [name for name in losses.names() if name not in ("quadruplet",)]


def batch(count, seed, dim=3):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, dim, generator=generator), torch.randint(3, (count,), generator=generator)


def content(memory):
    """id → (embedding, label) of the filled slots."""
    filled = memory.ids >= 0
    return {
        number: (tuple(row), label)
        for number, row, label in zip(
            memory.ids[filled].tolist(), memory.embeddings[filled].tolist(), memory.labels[filled].tolist(), strict=True
        )
    }


@given(st.integers(1, 9), st.lists(st.integers(0, 9), max_size=8))
def test_a_ring_holds_the_last_ones(capacity, sizes):
    memory, everything = CrossBatchMemory(capacity, 3), []
    for seed, size in enumerate(min(size, capacity) for size in sizes):
        rows, labels = batch(size, seed)
        ids = memory.add(rows, labels)
        assert ids.tolist() == list(range(len(everything), len(everything) + size))
        everything += zip(rows.tolist(), labels.tolist(), strict=True)
        last = list(enumerate(everything))[-capacity:]
        assert content(memory) == {number: (tuple(row), label) for number, (row, label) in last}
        assert len(memory) == len(last)


def test_label_0_is_a_class_and_no_empty_slot():
    memory = CrossBatchMemory(4, 3)
    ids = memory.add(torch.eye(3), torch.tensor([0, 0, 1]))
    pairs = memory.pairs(torch.tensor([0, 0, 1]), ids)
    assert pairs.positive.int().tolist() == [[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
    assert pairs.negative.int().tolist() == [[0, 0, 1, 0], [0, 0, 1, 0], [1, 1, 0, 0]]


def test_a_reset_memory_is_a_new_one():
    memory, (rows, labels) = CrossBatchMemory(4, 3), batch(3, seed=0)
    memory.add(rows, labels)
    memory.reset()
    assert len(memory) == 0
    assert not memory.pairs(labels).positive.any()
    assert memory.add(rows, labels).tolist() == [0, 1, 2]


def test_rows_that_are_not_stored_have_no_copy():
    """They are anchors like the others; the memory holds the chosen ones alone."""
    loss, memory = losses.CosineContrastive(), CrossBatchMemory(8, 3)
    rows, labels = batch(6, seed=1)
    stored = torch.tensor([True, False, True, True, False, False])
    value = remembered(loss, memory, rows, labels, stored=stored)
    assert content(memory).keys() == {0, 1, 2}
    ids = torch.tensor([0, 100, 1, 2, 101, 102])
    across = Pairs.across(labels, labels[stored], ids, torch.arange(3))
    torch.testing.assert_close(value, loss(rows, labels) + loss(rows, across, candidates=rows[stored]))


@pytest.mark.plain
def test_a_mask_that_does_not_fit_is_refused():
    loss, memory, (rows, labels) = losses.CosineContrastive(), CrossBatchMemory(8, 3), batch(6, seed=1)
    stored = torch.ones(6, dtype=torch.bool)
    with pytest.raises(UserError, match=r"^stored must be a boolean mask, not torch.int64$"):
        remembered(loss, memory, rows, labels, stored=stored.long())
    with pytest.raises(UserError, match=r"^stored has shape \(2,\), labels \(6,\)$"):
        remembered(loss, memory, rows, labels, stored=stored[:2])


def test_self_pairs_go_by_id_not_by_likeness():
    """An equal embedding of an earlier step stays a positive; the own copy does not."""
    memory = CrossBatchMemory(6, 3)
    rows, labels = torch.ones(2, 3), torch.tensor([5, 5])
    memory.add(rows, labels)
    ids = memory.add(rows, labels)
    assert memory.pairs(labels, ids).positive.int().tolist() == [[1, 1, 0, 1, 0, 0], [1, 1, 1, 0, 0, 0]]


def test_state_dict_in_the_middle_of_a_turn():
    memory = CrossBatchMemory(5, 3)
    for seed in range(2):
        memory.add(*batch(4, seed))
    copied = CrossBatchMemory(5, 3)
    copied.load_state_dict(copy.deepcopy(memory.state_dict()))
    for one in (memory, copied):
        ids = one.add(*batch(3, 9))
        assert ids.tolist() == [8, 9, 10]
    assert content(memory) == content(copied)
    assert all(
        torch.equal(a, b) for a, b in zip(memory.state_dict().values(), copied.state_dict().values(), strict=True)
    )
    assert set(memory.state_dict()) == {name for name, _ in memory.named_buffers()}, "the whole state is there"


def test_what_is_remembered_is_detached():
    memory = CrossBatchMemory(4, 3)
    rows = torch.eye(3).requires_grad_()
    memory.add(rows, torch.tensor([0, 0, 1]))
    assert not memory.embeddings.requires_grad
    before = memory.embeddings.clone()
    with torch.no_grad():
        rows.mul_(2)
    assert torch.equal(memory.embeddings, before)


@pytest.mark.parametrize("weight", [1.0, 0.3])
@pytest.mark.parametrize("name", [name for name in PAIR_LOSSES if hasattr(losses.MEMBERS[name], "of_similarities")])
def test_remembered_is_the_sum_written_out(name, weight):
    """L(batch) + w · L(batch, memory): the batch first goes in, its own copies play no part."""
    loss = losses.build(name)
    memory, old, old_labels = CrossBatchMemory(8, 3), *batch(6, 1)
    memory.add(old, old_labels)
    rows, labels = batch(4, 2)
    rows.requires_grad_()
    value = remembered(loss, memory, rows, labels, weight)
    # eight slots hold the last four of the first batch, and the second; the columns in any order
    columns = torch.cat([old[2:], rows.detach()])
    column_labels = torch.cat([old_labels[2:], labels])
    column_ids = torch.tensor([-1, -2, -3, -4, 0, 1, 2, 3])
    pairs = Pairs.across(labels, column_labels, torch.arange(4), column_ids)
    expected = loss(rows, labels) + weight * loss(rows, pairs, candidates=columns)
    torch.testing.assert_close(value, expected, rtol=1e-5, atol=1e-6)
    gradients = [torch.autograd.grad(x, rows)[0] for x in (value, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["snr", "angular"])
def test_remembered_with_losses_of_vectors(name):
    memory = CrossBatchMemory(8, 3)
    rows, labels = batch(4, 2)
    loss = losses.build(name)
    value = remembered(loss, memory, rows, labels)
    pairs = Pairs.within(labels)
    torch.testing.assert_close(value, loss(rows, labels) + loss(rows, pairs, candidates=rows))


@pytest.mark.parametrize("name", [name for name in PAIR_LOSSES if hasattr(losses.MEMBERS[name], "of_similarities")])
def test_first_step_is_twice_the_batch(name):
    """A memory that holds the batch alone repeats the batch term, and empty slots add nothing."""
    loss, (rows, labels) = losses.build(name), batch(6, 3)
    value = remembered(loss, CrossBatchMemory(50, 3), rows, labels)
    torch.testing.assert_close(value, 2 * loss(rows, labels), rtol=1e-5, atol=1e-6)


def test_half_precision_batches():
    memory = CrossBatchMemory(6, 3)
    rows, labels = batch(4, 2)
    value = remembered(losses.MultiSimilarity(), memory, rows.half().requires_grad_(), labels)
    value.backward()
    assert value.isfinite()
    assert memory.embeddings.dtype == torch.float32


@pytest.mark.parametrize("name", ["contrastive", "triplet", "margin", "snr", "quadruplet"])
def test_triplets_mined_from_the_memory(name):
    """Tuple losses: the miner chooses among the slots, the loss compares with what is in them."""
    memory, (rows, labels) = CrossBatchMemory(9, 3), batch(6, 3)
    memory.add(*batch(3, 4))
    ids = memory.add(rows, labels)
    miner = miners.DistanceWeighted(generator=torch.Generator().manual_seed(0))
    triplets = miner(rows, memory.pairs(labels, ids), memory.embeddings)
    assert (triplets.positive[triplets.valid] != ids[triplets.valid]).all()
    loss = losses.build(name)
    values = []
    for table in (memory.embeddings, memory.embeddings.clone()):
        if name == "quadruplet":
            loss.generator = torch.Generator().manual_seed(1)
        values.append(loss(rows, triplets, candidates=table))
    assert values[0] == values[1]
    assert values[0] > 0
