"""`torch.compile(fullgraph=True)` takes every dense loss whole: no graph break, no host synchronisation."""

import pytest
import torch

from tests.contracts.catalogue import NAMES, build, mined, rows

pytestmark = [
    pytest.mark.plain,
    pytest.mark.slow,
    # torch's own tracer and inductor use what torch itself warns of
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning"),
]

LABELS = torch.tensor([0, 0, 1, 1, 2, 2, 3, 0])
# sums over all tuples read one width on the host: only their lists of triplets are dense
LISTED = ("triplet", "snr")
ALL_TUPLES = ("angular", "smooth_ap", "pnp", "recall_at_k")


def targets_of(name, embeddings):
    triplets = mined(embeddings, LABELS)
    if name == "quadruplet":
        return build(name).complete(triplets)
    return triplets if name in LISTED else LABELS


def assert_compiles(name, backend, targets):
    embeddings = rows(8)
    loss = build(name)
    compiled = torch.compile(loss, fullgraph=True, backend=backend)
    results = []
    for run in (loss, compiled):
        leaf = embeddings.clone().requires_grad_()
        value = run(leaf, targets)
        results.append((value, torch.autograd.grad(value, leaf)[0]))
    torch.testing.assert_close(results[1], results[0])
    embeddings[2, 3] = torch.nan
    assert compiled(embeddings, targets).isnan(), "a NaN goes through the compiled graph as well"


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ALL_TUPLES])
def test_every_dense_loss_is_one_graph(name):
    torch.compiler.reset()
    assert_compiles(name, "eager", targets_of(name, rows(8)))


@pytest.mark.parametrize("name", ["multi_similarity", "fastap"])
def test_inductor(name):
    torch.compiler.reset()
    assert_compiles(name, "inductor", LABELS)
