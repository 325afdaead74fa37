"""Every pair loss against its equation written as loops: value and gradient, on squares, rectangles and odd batches."""

from functools import partial

import pytest
import torch

from lookalike.targets import Pairs
from tests.losses import oracles
from tests.losses.cases import PAIR_CASES, UNEVEN, assert_same, random_rows, rectangle

# dynamic_soft_margin: equal rows have equally hard negatives at both ends
KINKED = (
    "histogram",
    "fastap",
    "top_k_precision",
    "dynamic_soft_margin",
)  # duplicates sit on a node or in a tie: any sub-gradient is right
ODD_LABELS = {
    "one class": [3, 3, 3, 3],
    "all different": [5, 1, 9, 2],
    "one sample": [7],
    "two samples": [7, 7],
    "one pair and a stranger": [7, 7, 1],
    "mixed": [0, 0, 0, 1, 2],
}


@pytest.mark.parametrize("name", PAIR_CASES)
def test_batch_of_uneven_classes(name):
    loss, oracle = PAIR_CASES[name]
    z = random_rows(len(UNEVEN))
    value = loss(z, torch.tensor(UNEVEN))
    assert_same(value, oracle(z, z, *oracles.sides(UNEVEN)), [z])
    slope = torch.autograd.grad(loss(z, torch.tensor(UNEVEN)), z)[0].abs().max()
    # with k of at least everyone there is nothing to swap
    assert slope > 1e-6 or name == "top_k_precision 50", "this batch tests nothing"


@pytest.mark.parametrize("name", PAIR_CASES)
def test_rectangle_with_ids(name):
    loss, oracle = PAIR_CASES[name]
    if name.startswith("lifted_structure"):
        oracle = partial(oracle, ordered=True)
    z, c, pairs, (positives, negatives) = rectangle()
    c.requires_grad_()
    assert_same(loss(z, pairs, candidates=c), oracle(z, c, positives, negatives), [z, c])


@pytest.mark.parametrize("case", ODD_LABELS)
@pytest.mark.parametrize("name", PAIR_CASES)
def test_odd_batches(name, case):
    loss, oracle = PAIR_CASES[name]
    labels = ODD_LABELS[case]
    z = random_rows(len(labels), seed=3)
    assert_same(loss(z, torch.tensor(labels)), oracle(z, z, *oracles.sides(labels)), [z])


@pytest.mark.parametrize("name", PAIR_CASES)
def test_duplicated_rows(name):
    loss, oracle = PAIR_CASES[name]
    labels = [0, 0, 0, 1, 1, 2, 2]
    base = random_rows(4, seed=5).detach()
    # a positive pair, a negative pair and a pair of strangers, each of equal rows
    z = base[[0, 0, 1, 1, 2, 3, 2]].clone().requires_grad_()
    kinked = name.split()[0] in KINKED
    assert_same(loss(z, torch.tensor(labels)), oracle(z, z, *oracles.sides(labels)), [z], gradients=not kinked)


@pytest.mark.parametrize("threshold", [0.5, 0.85])
@pytest.mark.parametrize("name", PAIR_CASES)
def test_hand_made_masks(name, threshold):
    """Pairs in neither mask play no part, whatever their labels would say; some rows or columns repel no one."""
    loss, oracle = PAIR_CASES[name]
    if name.startswith("lifted_structure"):
        oracle = partial(oracle, ordered=True)
    z = random_rows(6, seed=8)
    generator = torch.Generator().manual_seed(4)
    draws = torch.rand(6, 6, generator=generator)
    pairs = Pairs((draws < 0.3).fill_diagonal_(False), (draws > threshold).fill_diagonal_(False))
    positives, negatives = ([row.nonzero().flatten().tolist() for row in m] for m in (pairs.positive, pairs.negative))
    assert_same(loss(z, pairs), oracle(z, z, positives, negatives), [z])


@pytest.mark.parametrize("name", PAIR_CASES)
def test_integer_labels_of_any_kind(name):
    loss, _ = PAIR_CASES[name]
    z = random_rows(4, seed=3)
    values = [loss(z, torch.tensor([3, 3, 1, 1], dtype=kind)) for kind in (torch.uint8, torch.int16, torch.int64)]
    assert values[0] == values[1] == values[2]
