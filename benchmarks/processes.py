"""How training scales from one process to two: `python -m benchmarks.processes [--steps 20] [--json PATH]`.

The same batch (128 glyphs through four convolutions with shared statistics, or 32 images of 96 pixels through a
ResNet-18 with frozen ones) by one process and by two over gloo, each on one thread. Seconds are of the clock, for the
median step: leave the machine alone, and give it two cores.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import torch
from torch.utils.data import TensorDataset

from lookalike import losses, samplers
from lookalike.evaluation.table import aligned
from lookalike.models import Conv4, Embedder, ResNet18
from lookalike.training import Loop, Objective, Schedule, optimisers
from lookalike.training.distributed import joined

CASES = ("conv4", "resnet18")
PARTS = ("load", "forward", "loss", "backward", "update")


def loop(case: str) -> Loop:
    batch, side, channels = (128, 32, 1) if case == "conv4" else (32, 96, 3)
    labels = torch.arange(batch // 2).repeat_interleave(4)
    images = torch.randint(256, (len(labels), channels, side, side), dtype=torch.uint8)
    torch.manual_seed(0)
    if case == "conv4":
        network = Embedder(Conv4(channels=1), dim=64)
    else:
        network = Embedder(ResNet18(), dim=128, batch_norm="frozen_statistics")
    return Loop(
        network,
        Objective(losses.MultiSimilarity()),
        optimisers.build("adam", network.parameter_groups(1e-5)),
        Schedule(steps=999),
        TensorDataset(images, labels),
        samplers.ClassBalanced(labels, batch, 4),
        prepare=lambda pixels: pixels / 127.5 - 1,
    )


def timed(case: str, steps: int) -> dict[str, float]:
    """The median step, and its parts."""
    made = loop(case)
    laps: list[dict[str, float]] = []
    for _ in range(steps + 3):
        begin = perf_counter()
        trained = made.advance()
        laps.append({**trained.seconds, "step": perf_counter() - begin})
    return {part: median(lap[part] for lap in laps[3:]) for part in (*PARTS, "step")}


def together(case: str, steps: int, count: int) -> dict[str, float]:
    """In processes of their own; the first says what it took."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    shared = os.environ | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(count)}
    command = [sys.executable, "-m", "benchmarks.processes", "--case", case, "--steps", str(steps)]
    children = [
        subprocess.Popen(
            command,
            env=shared | {"RANK": str(rank), "LOCAL_RANK": str(rank), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(count)
    ]
    found: dict[str, float] = json.loads(children[0].communicate()[0])
    for child in children[1:]:
        child.communicate()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--case", choices=CASES, help="as one of the processes")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    if chosen.case is not None:
        with joined():
            print(json.dumps(timed(chosen.case, chosen.steps)))
        return
    rows: list[dict[str, Any]] = []
    for case in CASES:
        one, two = (together(case, chosen.steps, count) for count in (1, 2))
        rows.append({"case": case, "one": one, "two": two})
    table = [["network", "processes", *(f"{part}, ms" for part in (*PARTS, "step")), "speed-up"]]
    for row in rows:
        for count in ("one", "two"):
            figures = [f"{1000 * row[count][part]:.1f}" for part in (*PARTS, "step")]
            table.append([row["case"], count, *figures, f"{row['one']['step'] / row[count]['step']:.2f}"])
    print("\n".join(aligned(table)))
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
