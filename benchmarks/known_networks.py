"""Speed and memory of the networks that have a name here, at full size with random weights: nothing is fetched.

    python -m benchmarks.known_networks [dinov2_small …] [--batch 16] [--rank 8] [--json FILE]

Processor milliseconds of one thread for an image: embedding it, a step of training with matrices of low rank beside the
linear layers, and a step of the whole network; and the most memory that a process has needed, for embedding and for
training. Every cell runs in its own process.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

from lookalike import models
from lookalike.models import Embedder
from lookalike.models.backbones.known import KNOWN

WAYS = ("encode", "low_rank", "whole")


def network(name: str, rank: int | None) -> Embedder:
    facts = KNOWN[name]
    pixels = {"crop": facts.size, "resize": facts.size}
    embedder = Embedder(models.build(f"hf:{facts.repository}", config=facts.shape, preprocessing=pixels), 128)
    if rank is not None:
        embedder.adapt(rank)
    return embedder


def measure(name: str, way: str, batch: int, rank: int) -> dict[str, float]:
    """Milliseconds per image, the best of two after a first one, and the peak of memory in megabytes."""
    torch.set_num_threads(1)
    run = network(name, rank if way == "low_rank" else None).train(way != "encode")
    images, best = torch.randn(batch, 3, KNOWN[name].size, KNOWN[name].size), float("inf")
    for attempt in range(3):
        start = time.process_time()
        if way == "encode":
            with torch.no_grad():
                run(images)
        else:
            run(images).square().sum().backward()
        if attempt:
            best = min(best, time.process_time() - start)
    return {"milliseconds": 1000 * best / batch, "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def in_child(name: str, way: str, batch: int, rank: int) -> dict[str, float]:
    words = ["--child", way, "--batch", str(batch), "--rank", str(rank)]
    command = [sys.executable, "-m", "benchmarks.known_networks", name, *words]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    result: dict[str, float] = json.loads(output.splitlines()[-1])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=["dinov2_small"])
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", choices=WAYS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(measure(given.names[0], given.child, given.batch, given.rank)))
        return
    rows: list[dict[str, Any]] = []
    for name in given.names:
        for way in WAYS:
            rows.append({"network": name, "way": way, **in_child(name, way, given.batch, given.rank)})
            print("{network:<16}{way:<10}{milliseconds:8.0f} ms{megabytes:8.0f} MB".format(**rows[-1]), flush=True)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
