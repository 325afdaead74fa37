"""Is the difference between two processes and one rounding alone? `python -m benchmarks.processes_rounding`.

Six steps of two convolutions with shared statistics of batch normalisation, by one process and by two over gloo, and
by one process that adds up the same batch in another order: rounding, and nothing else, is different there. The table
gives the largest difference of a weight. AdamW divides by the size of the gradient: where it is 0 but for rounding, its
sign is an accident, and the weight moves by the learning rate, one way or the other.
"""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from lookalike import losses, samplers
from lookalike.evaluation.table import aligned
from lookalike.samplers import BatchSampler
from lookalike.training import Loop, Objective, Schedule, optimisers
from lookalike.training.distributed import joined

STEPS, BATCH, RATE = 6, 32, 1e-4
OPTIMISERS, TYPES = ("adamw", "sgd"), ("float32", "float64")
Weights = dict[str, Tensor]


class Reversed(TensorDataset):
    """The same batch, last row first: the same sums in another order."""

    def __getitems__(self, rows: list[int]) -> list[Any]:
        return [self[row] for row in reversed(rows)]


def convolutions() -> nn.Sequential:
    """With biases in front of batch normalisation, which takes them out again: their gradient is 0 but for rounding."""
    parts: list[nn.Module] = []
    for channels in (1, 16):
        parts += [nn.Conv2d(channels, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU()]
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 16))


def trained(optimiser: str, kind: str, turned: bool = False) -> dict[str, Weights]:
    """The weights and first gradients of one run."""
    dtype = getattr(torch, kind)
    labels = torch.arange(BATCH).repeat_interleave(4)
    images = torch.rand(len(labels), 1, 32, 32, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    torch.manual_seed(0)
    network = convolutions().to(dtype)
    sampler: BatchSampler = samplers.ClassBalanced(labels, BATCH, 4)
    dataset = (Reversed if turned else TensorDataset)(images.to(dtype), labels)
    groups = optimisers.build(optimiser, [{"params": list(network.parameters()), "lr": RATE}])
    run = Loop(network, Objective(losses.MultiSimilarity()), groups, Schedule(steps=STEPS), dataset, sampler)
    gradients: Weights = {}
    for _ in range(STEPS):
        run.advance()
        gradients = gradients or {
            name: _copy(part.grad) for name, part in network.named_parameters() if part.grad is not None
        }
    return {"weights": {name: _copy(part) for name, part in network.named_parameters()}, "gradients": gradients}


def _copy(values: Tensor) -> Tensor:
    return values.detach().double().clone()


def by_two(optimiser: str, kind: str) -> dict[str, Weights]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    shared = os.environ | {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": "2",
        "OMP_NUM_THREADS": "1",
    }
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "found.pt"
        command = [sys.executable, "-m", "benchmarks.processes_rounding", "--as", optimiser, kind, str(file)]
        children = [
            subprocess.Popen(command, env=shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(2)
        ]
        for child in children:
            if child.wait(timeout=300) != 0:
                raise RuntimeError("one of the two processes failed")
        found: dict[str, Weights] = torch.load(file)
    return found


def difference(one: Weights, other: Weights) -> float:
    return max(float((one[name] - other[name]).abs().max()) for name in one)


def rows() -> Iterator[list[str]]:
    yield [
        "optimiser",
        "numbers",
        "two processes",
        "another order",
        "apart by over 1e-6",
        "their gradient",
        "all gradients",
    ]
    for optimiser in OPTIMISERS:
        for kind in TYPES:
            one, two, turned = trained(optimiser, kind), by_two(optimiser, kind), trained(optimiser, kind, turned=True)
            apart = torch.cat(
                [(one["weights"][name] - two["weights"][name]).abs().flatten() for name in one["gradients"]]
            )
            sizes = torch.cat([one["gradients"][name].abs().flatten() for name in one["gradients"]])
            largest = sizes[apart > 1e-6]
            yield [
                optimiser, kind, f"{difference(one['weights'], two['weights']):.1e}",
                f"{difference(one['weights'], turned['weights']):.1e}", f"{len(largest)} of {len(sizes)}",
                f"{float(largest.median()):.0e}" if len(largest) else "", f"{float(sizes.median()):.0e}",
            ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--as", nargs=3, metavar=("OPTIMISER", "NUMBERS", "FILE"), dest="role", help="as one of the two"
    )
    role = parser.parse_args().role
    torch.set_num_threads(1)
    if role is None:
        print("\n".join(aligned(list(rows()))))
        return
    with joined() as ranks:
        found = trained(role[0], role[1])
        if ranks.first:
            torch.save(found, role[2])


if __name__ == "__main__":
    main()
