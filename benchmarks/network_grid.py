"""Whether `lookalike fit` chooses network, size and frame well: the whole grid beside the cell that it takes.

    python -m benchmarks.network_grid SOURCE [--photos 480] [--minutes 10] [--set KEY=VALUE] [--json FILE]

Every network that is installed, at every size, with the centre of a photo and with all of it warped to the square, on
one sample of train classes: map@r of the better of frozen and whitened features over folds of classes, and processor
milliseconds per image of what computes them. Then `fit` chooses on the same train classes, with minutes of the clock.
The best of thirty cells is partly lucky on the photos that make it the best, so that the difference between it and the
cell of `fit` is given on as many other train photos too, with its interval over classes. Features are kept: what is in
the cache costs nothing.
"""

import argparse
import json
import resource
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from lookalike import data
from lookalike.evaluation.table import aligned
from lookalike.features import backend_of
from lookalike.fit import stages
from lookalike.fit.choose import choose
from lookalike.fit.choose_network import are_long, choose_network, sample_order
from lookalike.fit.judge_network import Measured, measure
from lookalike.fit.networks import NetworkAtSize, at, cell_of, cells, twins
from lookalike.recipe import Recipe, build, to_toml
from lookalike.recipe.protocol import tasks
from lookalike.runs import RunFolder

TIMED = 16  # images


def processor_milliseconds(recipe: Recipe) -> float:
    """Of one image."""
    model = build.model(recipe).headless()
    how, run = model.preprocessing, backend_of(model, "auto").run
    inputs = torch.zeros(1, how.channels, how.crop, how.crop)
    run(inputs)
    before = resource.getrusage(resource.RUSAGE_SELF)
    for _ in range(TIMED):
        run(inputs)
    after = resource.getrusage(resource.RUSAGE_SELF)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / TIMED


def grid(recipe: Recipe, sample: data.Dataset) -> tuple[dict[NetworkAtSize, Measured], dict[NetworkAtSize, float]]:
    """Every cell, and what an image takes in it; twins take the same."""
    measured, cost, warped = {}, {}, are_long(sample)
    for first in cells(recipe):
        cost[first] = processor_milliseconds(at(recipe, first))
        for cell in (first, *(twins(recipe, first) if warped else [])):
            measured[cell] = measure(at(recipe, cell), sample, "auto", cost[first] / 1000)
            print(f"{cell.name:<50}{measured[cell].value:.3f}{cost[first]:6.1f} ms", flush=True)
    return measured, cost


def taken(recipe: Recipe, dataset: data.Dataset) -> NetworkAtSize:
    """What `fit` chooses."""
    with TemporaryDirectory() as place:
        folder = RunFolder(Path(place) / "run")
        with folder.claimed():
            return cell_of(choose_network(recipe, dataset, folder.begin("new", to_toml(recipe, ""))))


def judged(source: str, photos: int, overrides: list[str]) -> dict[str, Any]:
    dataset, recipe, _ = choose(source, None, overrides)
    decoded = data.decoded(dataset, stages.short_side(recipe))
    train = stages.split(decoded, tasks(recipe)[0].recipe).train
    order = sample_order(train, recipe.seed)
    sample, others = (train.subset(order[start : start + photos]) for start in (0, photos))
    measured, cost = grid(recipe, sample)
    own = taken(recipe, decoded)
    best = max(measured.values(), key=lambda each: each.value)
    gap = measured[own].minus(best, 0.95)
    fresh = {
        cell: measure(at(recipe, cell), others, "auto", cost[cell._replace(warp=False)] / 1000)
        for cell in {own, best.cell}
    }
    fresh_gap = fresh[own].minus(fresh[best.cell], 0.95)
    sizes = sorted({cell.size for cell in measured})
    lines = [["network", "sees", *map(str, sizes)]]
    for backbone in dict.fromkeys(cell.backbone for cell in measured):
        for warp in sorted({cell.warp for cell in measured}):
            row = [measured[NetworkAtSize(backbone, size, warp)].value for size in sizes]
            lines.append([backbone, "all" if warp else "centre", *(f"{value:.3f}" for value in row)])
        lines.append([backbone, "ms", *(f"{cost[NetworkAtSize(backbone, size)]:.0f}" for size in sizes)])
    print("\n".join(aligned(lines)))
    print(f"fit takes {own.name} ({measured[own].value:.3f}), the best is {best.cell.name} ({best.value:.3f}): ")
    for name, each, count in (("these", gap, len(sample)), ("other", fresh_gap, len(others))):
        print(f"{each.difference:+.3f} [{each.low:+.3f}, {each.high:+.3f}] on {name} {count} photos")
    cells_ = [{"cell": list(cell), "map@r": each.value, "readout": each.readout} for cell, each in measured.items()]
    return {
        "source": source,
        "cells": cells_,
        "taken": list(own),
        "best": list(best.cell),
        "gap": list(gap),
        "gap on others": list(fresh_gap),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("--photos", type=int, default=480)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--set", action="append", default=[], dest="overrides")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found = judged(given.source, given.photos, [f"train.minutes={given.minutes}", *given.overrides])
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=2, default=str))


if __name__ == "__main__":
    main()
