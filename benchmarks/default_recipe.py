"""The choices of the default recipe against their alternatives, one change at a time, on held-out classes.

    python -m benchmarks.default_recipe PATH/CUB_200_2011 [--steps 200] [--seeds 0] [--out FILE.json]
    python -m benchmarks.default_recipe --small [--steps 400] [--seeds 0 1 2] [--out FILE.json]

Photographs: only the train half of CUB is used (classes 1–100); a quarter of its classes is held out and measured, so
that the classes of the paper's test are never looked at. Small images: the train half of glyphs, likewise. Validation
looks at the start and the end only: all rows train equally long. Every finished row is kept in FILE.json, and a second
call goes on from there.
"""

import argparse
import json
import statistics
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.trial import decoded, trial
from lookalike import data
from lookalike.cli.allocator import keep_memory
from lookalike.data import Dataset
from lookalike.evaluation.statistics import bootstrap
from lookalike.fit.choose import choose
from lookalike.protocols.class_disjoint import Parts, parts

HELD_OUT = 0.25
SAME = "the default"
PHOTOGRAPHS = {
    SAME: [],
    "weights: as trained, not blended": ["train.blend=[]"],
    "head: random start": ["model.head=default"],
    "head: trained alone first": ["model.head=default", "head.steps=600"],
    "loss: proxy_anchor": ["loss.name=proxy_anchor", "optimiser.loss_lr=1e-2"],
    "loss: supcon": ["loss.name=supcon"],
    "rate: 5e-5": ["optimiser.lr=5e-5"],
    "rate: 3e-4": ["optimiser.lr=3e-4"],
    "rate: 1e-3": ["optimiser.lr=1e-3"],
    "crops: area 0.08 to 1": ["images.area=[0.08, 1.0]"],
    "batch: 32 classes of 2": ["sampler.per_class=2"],
}
SMALL = {
    SAME: [],
    "loss: proxy_anchor": ["loss.name=proxy_anchor", "optimiser.loss_lr=1e-2"],
    "loss: supcon": ["loss.name=supcon"],
    "loss: circle": ["loss.name=circle"],
    "rate: 2e-3": ["optimiser.lr=2e-3"],
    "rate: 1e-2": ["optimiser.lr=1e-2"],
    "batch: 32 classes of 4": ["sampler.batch_size=128", "sampler.per_class=4"],
    "batch: 64 classes of 4": ["sampler.per_class=4"],
    "embedding: 128 dimensions": ["model.dim=128"],
}


def held_out(dataset: Dataset, seed: int) -> Parts:
    """A quarter of the train classes to be measured, the others to learn from."""
    known = replace(dataset.where(split="train"), splits=None)
    return parts(known, test=HELD_OUT, validation=0.1, seed=seed)


def run(
    source: str | None, rows: dict[str, list[str]], steps: int, seeds: list[int], common: list[str], out: Path
) -> None:
    done = json.loads(out.read_text()) if out.is_file() else {}
    dataset = data.load(source or "glyphs")
    for seed in seeds:
        for name, changes in rows.items():
            key = f"{name} / {seed}"
            if key in done:
                continue
            fixed = [*common, f"train.steps={steps}", f"train.validate_every={steps}", f"seed={seed}"]
            _, recipe, _ = choose(dataset, None, [*changes, *fixed])
            done[key] = trial(recipe, held_out(decoded(dataset, recipe), seed=0))
            out.write_text(json.dumps(done))
            metrics = done[key]["metrics"]
            print(f"{key:<32} recall@1 {metrics['recall@1']:.4f}  map@r {metrics['map@r']:.4f}", flush=True)
    print("\n" + table(done, list(rows)))


def table(done: dict[str, dict], rows: list[str]) -> str:  # type: ignore[type-arg]
    """Means over seeds, and the mean paired difference to the default with its interval over queries."""
    seeds = sorted({key.split(" / ")[1] for key in done})
    lines = [
        f"| choice | recall@1 | map@r | map@r − default, 95% interval | seeds {', '.join(seeds)} |",
        "|---|---|---|---|---|",
    ]
    for name in rows:
        cells = [
            (done[f"{name} / {seed}"], done.get(f"{SAME} / {seed}")) for seed in seeds if f"{name} / {seed}" in done
        ]
        if not cells:
            continue
        means = {m: statistics.mean(cell["metrics"][m] for cell, _ in cells) for m in ("recall@1", "map@r")}
        gaps = [
            np.array(cell["per_query"]["map@r"]) - np.array(base["per_query"]["map@r"]) for cell, base in cells if base
        ]
        gap = np.nanmean(gaps, axis=0)
        low, high = bootstrap.interval(gap)
        span = "" if name == SAME else f"{np.nanmean(gap):+.4f} [{low:+.4f}, {high:+.4f}]"
        lines.append(f"| {name} | {means['recall@1']:.4f} | {means['map@r']:.4f} | {span} | {len(cells)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", nargs="?")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--set", action="append", default=[], dest="common", help="a change that all rows share")
    parser.add_argument("--only", nargs="+", help="beginnings of row names")
    parser.add_argument("--out", type=Path, default=Path("default_recipe.json"))
    given = parser.parse_args()
    keep_memory()
    rows = SMALL if given.small else PHOTOGRAPHS
    if given.only:
        rows = {name: changes for name, changes in rows.items() if name.startswith(tuple(given.only))}
    run(given.source, rows, given.steps or (400 if given.small else 200), given.seeds, given.common, given.out)


if __name__ == "__main__":
    main()
