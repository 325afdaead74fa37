"""Where the time of a training step goes: load, forward, loss, backward, update; and how much of it is the backbone.

    python -m benchmarks.training_step [DATA] [--steps 20] [--set KEY=VALUE] [--upto STAGE] [--json FILE]

Runs the default recipe of `lookalike fit` for DATA (without: generated photographs of 144 pixels), as the command line
does. The backbone's share is forward and backward of backbone, pooling and head; the rest is loading, mining, loss and
update. `--plain-allocator` leaves glibc as it is.

With `--upto STAGE` only the later stages learn, once with this one and all before it computed in every step, once on
cached maps of them; a step of the three is compared in processor seconds.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np
import torch

from lookalike import data
from lookalike.cli.allocator import keep_memory
from lookalike.fit.choose import choose
from lookalike.fit.defaults import fit_batches
from lookalike.fit.prepare import train_features
from lookalike.models import Preprocessing
from lookalike.protocols.class_disjoint import parts
from lookalike.recipe import build

WARM_UP = 3  # steps
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
    loop = build.loop(recipe, model, divided.train, train_features(recipe, model, divided.train))
    trained, processor = [], []
    for _ in range(steps + WARM_UP):
        before = time.process_time()
        trained.append(loop.advance().seconds)
        processor.append(time.process_time() - before)
    times = {name: statistics.median(step[name] for step in trained[WARM_UP:]) for name in PARTS}
    return {**times, "batch": float(loop.sampler.batch_size), "processor": statistics.median(processor[WARM_UP:])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", nargs="?")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--upto", metavar="STAGE")
    parser.add_argument("--plain-allocator", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    if not given.plain_allocator:
        keep_memory()
    times = measure(given.source or photographs(), given.overrides, given.steps)
    batch, processor = times.pop("batch"), times.pop("processor")
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
    figures = {**times, "outside": outside, "images_per_second": batch / total, "processor": processor}
    if given.upto is not None:
        for name, key in (("frozen", "model.freeze"), ("on_maps", "features.upto")):
            changed = [*given.overrides, f"{key}={given.upto}"]
            figures[name] = measure(given.source or photographs(), changed, given.steps)["processor"]
        whole, frozen, on_maps = (1000 * figures[name] for name in ("processor", "frozen", "on_maps"))
        print(f"processor milliseconds: the whole network {whole:.0f}, up to {given.upto} frozen {frozen:.0f}, on maps")
        print(f"{on_maps:.0f}: {frozen / on_maps:.1f} times less than frozen, {whole / on_maps:.1f} than the whole")
    if given.json is not None:
        given.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
