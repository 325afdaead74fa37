"""Where the time of a training step goes: load, forward, loss, backward, update; and how much of it is the backbone.

    python -m benchmarks.training_step [DATA] [--steps 20] [--set KEY=VALUE] [--json FILE]

Runs the default recipe of `lookalike fit` for DATA (without: generated photographs of 144 pixels), as the command line
does. The backbone's share is forward and backward of backbone, pooling and head; the rest is loading, mining, loss and
update. `--plain-allocator` leaves glibc as it is.
"""

import argparse
import json
import statistics
from pathlib import Path

import numpy as np
import torch

from lookalike import data
from lookalike.cli.allocator import keep_memory
from lookalike.fit.choose import choose
from lookalike.fit.defaults import fit_batches
from lookalike.models import Preprocessing
from lookalike.protocols.class_disjoint import parts
from lookalike.recipe import build

PARTS = ("load", "forward", "loss", "backward", "update")
OUTSIDE = ("load", "loss", "update")


def photographs(classes: int = 40, each: int = 8, side: int = 144) -> data.Dataset:
    """Smooth random pictures: as costly to crop and resize as real ones."""
    generator = np.random.default_rng(0)
    small = generator.integers(0, 256, (classes * each, 12, 16, 3), dtype=np.uint8)
    images = [np.kron(image, np.ones((side // 12, side // 12, 1), np.uint8)) for image in small]
    return data.arrays(images, np.repeat(np.arange(classes), each), name="generated photographs")


def measure(source: str | data.Dataset, overrides: list[str], steps: int) -> dict[str, float]:
    """Median seconds per part of a step."""
    dataset, recipe, model = choose(source, None, overrides)
    side = build.views(recipe, Preprocessing()).preprocessing.resize or 256
    divided = parts(data.decoded(dataset, side), recipe.data.test, recipe.data.validation, recipe.seed)
    recipe = fit_batches(recipe, divided.train)
    loop = build.loop(recipe, model, divided.train)
    trained = [loop.advance().seconds for _ in range(steps + 3)][3:]
    times = {name: statistics.median(step[name] for step in trained) for name in PARTS}
    return {**times, "batch": float(loop.sampler.batch_size)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", nargs="?")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--plain-allocator", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if not given.plain_allocator:
        keep_memory()
    times = measure(given.source or photographs(), given.overrides, given.steps)
    batch = times.pop("batch")
    total = sum(times.values())
    print(f"{'part':<10} {'ms':>8} {'share':>7}")
    for name, seconds in times.items():
        print(f"{name:<10} {1000 * seconds:8.1f} {seconds / total:7.1%}")
    outside = sum(times[name] for name in OUTSIDE) / total
    print(
        f"{'a step':<10} {1000 * total:8.1f}   "
        f"batch {batch:.0f}, {batch / total:.0f} images/s, {torch.get_num_threads()} threads"
    )
    print(f"outside the backbone: {outside:.1%}")
    if given.json is not None:
        given.json.write_text(json.dumps({**times, "outside": outside, "images_per_second": batch / total}, indent=2))


if __name__ == "__main__":
    main()
