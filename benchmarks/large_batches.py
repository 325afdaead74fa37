"""Peak memory against the size of a batch, at once and in chunks: `python -m benchmarks.large_batches [--json PATH]`.

A ResNet-18 with frozen statistics on images of 96 pixels, multi-similarity loss, Adam. Each measurement is a process of
its own; memory is the largest resident set of the process during three steps, less that of the same process just before
the first one. Seconds are of the processor, for the last step.
"""

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path
from time import process_time

import torch
from torch.utils.data import TensorDataset

from lookalike import losses, samplers
from lookalike.evaluation.table import aligned
from lookalike.models import Embedder, ResNet18
from lookalike.training import Loop, Objective, Schedule, optimisers

SIDE, CHUNK, SIZES = 96, 16, (32, 64, 128, 256)


def peak() -> int:
    """Bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def one(batch: int, chunk: int | None) -> dict[str, float]:
    """Three steps with one batch size."""
    torch.set_num_threads(1)
    labels = torch.arange(batch // 2).repeat_interleave(4)
    images = torch.randint(256, (len(labels), 3, SIDE, SIDE), dtype=torch.uint8)
    network = Embedder(ResNet18(), dim=128, batch_norm="frozen_statistics")
    optimiser = optimisers.build("adam", network.parameter_groups(1e-5))
    loop = Loop(
        network,
        Objective(losses.MultiSimilarity()),
        optimiser,
        Schedule(steps=9),
        TensorDataset(images, labels),
        samplers.ClassBalanced(labels, batch, 4),
        prepare=lambda pixels: pixels / 127.5 - 1,
        chunk=chunk,
    )
    before = peak()
    for _ in range(3):
        begin = process_time()
        loop.advance()
        seconds = process_time() - begin
    return {"megabytes": (peak() - before) / 1e6, "seconds": seconds}


def apart(batch: int, chunk: int | None) -> dict[str, float]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.large_batches", "--batch", str(batch), "--chunk", str(chunk or 0)]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--batch", type=int, help="measure this one only, and print JSON")
    parser.add_argument("--chunk", type=int, default=CHUNK)
    chosen = parser.parse_args()
    if chosen.batch is not None:
        print(json.dumps(one(chosen.batch, chosen.chunk or None)))
        return
    rows = [(batch, apart(batch, None), apart(batch, chosen.chunk)) for batch in SIZES]
    table = [["batch", "MB at once", f"MB in chunks of {chosen.chunk}", "s at once", "s in chunks"]]
    for batch, plain, chunked in rows:
        memory = [f"{found['megabytes']:.0f}" for found in (plain, chunked)]
        table.append([str(batch), *memory, f"{plain['seconds']:.2f}", f"{chunked['seconds']:.2f}"])
    print("\n".join(aligned(table)))
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
