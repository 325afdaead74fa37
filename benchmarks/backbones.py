"""The speed of EfficientNet-lite0 on a CPU: ours beside efficientnet_lite_pytorch, the package of its weights.

    python -m benchmarks.backbones [--batch 64] [--crop 128] [--rounds 2] [--json FILE]

Images per second of CPU time on one thread. Every cell runs in its own process, in turns; the best round counts. Two
things make the difference: our embedder hands images on channels last, and an allocator that keeps its memory ("kept":
glibc's MALLOC_MMAP_MAX_=0 and MALLOC_TRIM_THRESHOLD_) does not fetch every large activation afresh from the system.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

KEPT = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**40)}
CELLS = [(who, kept) for kept in (False, True) for who in ("peer", "ours")]


def network(who: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """The pooled features, statistics of batch normalisation frozen."""
    if who == "ours":
        from lookalike.models import Embedder, build

        return Embedder(build("efficientnet_lite0"), None, batch_norm="frozen_statistics").train()
    peer: Any = import_module("efficientnet_lite_pytorch").EfficientNet.from_name("efficientnet-lite0").eval()
    return lambda images: peer.extract_features(images).mean((2, 3))


def measure(who: str, batch: int, crop: int) -> dict[str, float]:
    """Images per second, forward only and forward with backward; the best of two after a first one."""
    torch.set_num_threads(1)
    run, images = network(who), torch.randn(batch, 3, crop, crop)
    best = {"encode": float("inf"), "train": float("inf")}
    for attempt in range(3):
        for kind in best:
            start = time.process_time()
            if kind == "train":
                run(images).square().sum().backward()  # type: ignore[no-untyped-call]
            else:
                with torch.no_grad():
                    run(images)
            if attempt:
                best[kind] = min(best[kind], time.process_time() - start)
    return {kind: batch / seconds for kind, seconds in best.items()}


def in_child(who: str, kept: bool, batch: int, crop: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.backbones", "--child", who, "--batch", str(batch), "--crop", str(crop)]
    environment = {**os.environ, **(KEPT if kept else {})}
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    result: dict[str, float] = json.loads(output.splitlines()[-1])
    return result


def table(batch: int, crop: int, rounds: int) -> list[dict[str, Any]]:
    best: dict[tuple[str, bool], dict[str, float]] = {}
    for _ in range(rounds):
        for cell in CELLS:
            for kind, value in in_child(*cell, batch, crop).items():
                seen = best.setdefault(cell, {})
                seen[kind] = max(value, seen.get(kind, 0.0))
    peer = best["peer", False]
    return [
        {"network": who, "memory": "kept" if kept else "default", **speeds}
        | {f"{kind}_ratio": speeds[kind] / peer[kind] for kind in speeds}
        for (who, kept), speeds in best.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--crop", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(measure(given.child, given.batch, given.crop)))
        return
    rows = table(given.batch, given.crop, given.rounds)
    print(f"batch {given.batch}, {given.crop} px; images per second of one core, and times the peer")
    print(f"{'network':<8} {'memory':<8} {'encode':>8} {'×':>6} {'train':>8} {'×':>6}")
    for row in rows:
        print(
            f"{row['network']:<8} {row['memory']:<8} {row['encode']:>8.1f} {row['encode_ratio']:>6.2f} "
            f"{row['train']:>8.1f} {row['train_ratio']:>6.2f}"
        )
    if given.json is not None:
        given.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
