"""No loss gives NaN or infinity, in value or gradient, whatever the batch."""

from itertools import product

import pytest
import torch

from lookalike import miners
from lookalike.targets import Pairs
from tests.contracts.catalogue import CLASS_NAMES, NAMES, PAIR_NAMES, SAMPLED, TAKES_TRIPLETS, build, mined, rows

TRIPLET_MINERS = ("distance_weighted", "hard", "random", "semihard", "softhard")

LABELS = torch.tensor([0, 0, 1, 1, 2, 2, 3, 0])
BATCHES = {
    "ordinary": (rows(8), LABELS),
    "one class": (rows(5), torch.tensor([2] * 5)),
    "all different": (rows(4), torch.tensor([3, 1, 0, 2])),
    "one sample": (rows(1), torch.tensor([1])),
    "duplicated rows": (rows(2)[[0, 0, 0, 1, 1, 0, 1, 1]], LABELS),
    "opposite rows": (rows(1) * torch.tensor([1.0, -1, 1, -1, 1, -1, 1, -1])[:, None], LABELS),
    "zero rows": (rows(8) * torch.tensor([1.0, 0, 1, 0, 0, 1, 1, 1])[:, None], LABELS),
    "only zero rows": (torch.zeros(8, 6), LABELS),
    "constant rows": (torch.ones(8, 6), LABELS),
    "one-hot rows": (torch.eye(6)[[0, 0, 1, 2, 3, 4, 5, 1]], LABELS),
    "norms of 1e-20": (rows(8) * 1e-20, LABELS),
    "norms of 1e+20": (rows(8) * 1e20, LABELS),
    "norms of 1e+38": (torch.eye(8, 6) * 1e38, LABELS),
    "norms of 1e-20 and 1e+20": (rows(8) * torch.tensor([1e20, 1e-20] * 4)[:, None], LABELS),
    "float16": (rows(8).half(), LABELS),
    "bfloat16": (rows(8).bfloat16(), LABELS),
    "float16 at its end": (rows(8).half() * 2e4, LABELS),
}


def assert_finite(loss, embeddings, targets, of="", **more):
    embeddings = embeddings.clone().requires_grad_()
    value = loss(embeddings, targets, **more)
    assert value.dim() == 0, of
    assert value.dtype in (torch.float32, torch.float64), f"half precision is widened: {of}"
    assert value.isfinite(), (of, value)
    value.backward()
    for tensor in (embeddings, *loss.parameters()):
        assert tensor.grad is None or tensor.grad.isfinite().all(), (of, tensor.grad)
    assert embeddings.grad is not None, f"a degenerate batch stays attached to the graph: {of}"
    assert embeddings.grad.dtype == embeddings.dtype, of


@pytest.mark.parametrize("name", NAMES)
def test_every_batch(name):
    for batch, (embeddings, labels) in BATCHES.items():
        assert_finite(build(name), embeddings, labels, batch)


@pytest.mark.parametrize("name", TAKES_TRIPLETS)
def test_every_batch_as_mined_triplets(name):
    for batch, (embeddings, labels) in BATCHES.items():
        assert_finite(build(name), embeddings, mined(embeddings, labels), batch)


@pytest.mark.parametrize("name", CLASS_NAMES)
def test_a_single_class_overall(name):
    assert_finite(build(name, classes=1), rows(3), torch.zeros(3, dtype=torch.int64))


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_batch(name):
    assert_finite(build(name), rows(0), torch.tensor([], dtype=torch.int64))


@pytest.mark.parametrize("name", [name for name in PAIR_NAMES if name not in SAMPLED])
def test_no_candidates(name):
    """A memory with nothing in it: the anchors are there, no column is."""
    pairs = Pairs.across(LABELS, torch.tensor([], dtype=torch.int64))
    assert_finite(build(name), rows(8), pairs, candidates=rows(0))


@pytest.mark.parametrize("miner", TRIPLET_MINERS)
@pytest.mark.parametrize("name", TAKES_TRIPLETS)
def test_mined_triplets_without_candidates(name, miner):
    nobody = torch.tensor([], dtype=torch.int64)
    triplets = miners.build(miner)(rows(8), Pairs.across(LABELS, nobody), rows(0))
    assert_finite(build(name), rows(8), triplets, candidates=rows(0))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("fastap", "histogram")])
def test_vectors_of_any_length_in_every_geometry(name):
    """Raw products saturate, and so does whatever a loss makes of them."""
    for geometry, length in product(["none", "ball"], [1e-42, 1e-39, 1e-30, 1e-9, 1e9, 1e15, 1e19, 1e25, 1e30]):
        of = f"{geometry}, {length}"
        assert_finite(build(name, normalise=geometry), rows(8) * length, LABELS, of)
        if name in PAIR_NAMES and name not in SAMPLED:
            pairs = Pairs.across(LABELS, torch.tensor([0, 1, 2, 3, 0, 9]))
            candidates = (rows(6, seed=1) * length).requires_grad_()
            assert_finite(build(name, normalise=geometry), rows(8) * length, pairs, of, candidates=candidates)
            assert candidates.grad.isfinite().all(), of


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("fastap", "histogram")])
def test_vectors_of_all_lengths_in_one_batch(name):
    lengths = torch.tensor([1e-42, 1e-39, 1e-9, 0.0, 1.0, 1e16, 1e19, 1e25])
    for geometry, seed in product(["sphere", "ball", "none"], range(3)):
        mixed = rows(8, seed) * lengths[:, None].roll(seed, 0)
        assert_finite(build(name, normalise=geometry), mixed, LABELS, f"{geometry}, {seed}")


@pytest.mark.parametrize("name", PAIR_NAMES)
def test_label_ids_above_2_to_the_24(name):
    """Ids that float32 cannot tell apart are different classes all the same."""
    embeddings, loss = rows(8), build(name)
    small = torch.tensor([0, 0, 1, 1, 2, 2, 3, 3])
    expected = loss(embeddings, small)
    for base in (2**24, 2**53, 2**62):
        assert_finite(build(name), embeddings, base + small)
        assert build(name)(embeddings, base + small) == expected


@pytest.mark.parametrize("name", NAMES)
def test_float16_is_widened_not_computed_in(name):
    """The value of a half batch is that of the same numbers in float32."""
    embeddings = rows(8).half()
    assert build(name)(embeddings, LABELS) == build(name)(embeddings.float(), LABELS)


@pytest.mark.parametrize("name", NAMES)
def test_autocast_changes_nothing(name):
    embeddings = rows(8)
    expected = build(name)(embeddings, LABELS)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = build(name)(embeddings, LABELS)
    torch.testing.assert_close(value, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_float32_is_close_to_float64(name):
    """No cancellation eats the digits of an ordinary batch."""
    embeddings = rows(8, seed=4)
    single, double = build(name), build(name).double()
    values = [loss(x, LABELS) for loss, x in ((single, embeddings), (double, embeddings.double()))]
    torch.testing.assert_close(values[0].double(), values[1].double(), rtol=1e-4, atol=1e-5)
