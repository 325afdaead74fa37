"""`lookalike fit` with its default recipe beside a peer's loop on CUB-200-2011: same crop, dimension, batch and steps.

    python -m benchmarks.cub_comparison PATH/CUB_200_2011 --peer SCRIPT [--seeds 0 1 2] [--steps 300] [--out FILE]
    python -m benchmarks.cub_comparison PATH/CUB_200_2011 --minutes 20 [--out FILE]

Classes 1–100 train, 101–200 test. The peer's script is run as it is, once per recipe it knows and seed
(`SCRIPT ROOT --recipe NAME --steps N --seed S`), and its last figures for 128 dimensions are read. Ours holds ten of
the train classes back for validation; the peer trains on all of them. Finished runs are kept in FILE; a second call
goes on.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lookalike.cli.allocator import keep_memory
from lookalike.fit import fit

METRICS = ("recall@1", "map@r")


def ours(root: Path, overrides: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        run = fit(root, Path(folder) / "run", overrides=overrides, audit=False, tell=lambda event: say(event))
        entries = {entry.name: {name: entry.result[name] for name in METRICS} for entry in run.entries}
        return {**entries["this model"], "baselines": entries, "steps": run.ending.steps, "seconds": run.ending.seconds}


def say(event: Any) -> None:
    if event["event"] in ("validation", "note"):
        print("   ", {key: value for key, value in event.items() if key != "event"}, file=sys.stderr, flush=True)


def peer(script: Path, root: Path, recipe: str, steps: int, seed: int) -> dict[str, Any]:
    command = [
        sys.executable,
        str(script.resolve()),
        str(root),
        "--recipe",
        recipe,
        "--steps",
        str(steps),
        "--seed",
        str(seed),
    ]
    with tempfile.TemporaryDirectory() as folder:
        text = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    found = re.findall(rf"{recipe} 128-D\s+recall@1 ([\d.]+)\s+map@r ([\d.]+)", text)[-1]
    return dict(zip(METRICS, map(float, found), strict=True))


def table(done: dict[str, Any], seeds: list[int]) -> str:
    """Every seed, and the mean paired difference with its standard error."""
    rows = sorted({key.split(" / ")[0] for key in done})
    lines = ["| | seed | recall@1 | map@r |", "|---|---|---|---|"]
    lines += [
        f"| {key.split(' / ')[0]} | {key.split(' / ')[1]} | {cell['recall@1']:.4f} | {cell['map@r']:.4f} |"
        for key, cell in sorted(done.items())
    ]
    for row in rows:
        pairs = [
            (done[f"ours / {seed}"], done[f"{row} / {seed}"])
            for seed in seeds
            if row != "ours" and f"{row} / {seed}" in done and f"ours / {seed}" in done
        ]
        if pairs:
            gaps = {name: [mine[name] - other[name] for mine, other in pairs] for name in METRICS}
            told = [
                f"{name} {statistics.mean(gap):+.4f} (each: {', '.join(f'{value:+.4f}' for value in gap)})"
                for name, gap in gaps.items()
            ]
            lines.append(f"\nours − {row}, paired over {len(pairs)} seeds: " + "; ".join(told))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("--peer", type=Path, help="the script of the peer's loop")
    parser.add_argument("--recipes", nargs="*", default=["careful", "plain"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--minutes", type=float, help="one run of ours of this length instead")
    parser.add_argument("--out", type=Path, default=Path("cub_comparison.json"))
    given = parser.parse_args()
    keep_memory()
    done = json.loads(given.out.read_text()) if given.out.is_file() else {}
    jobs: dict[str, Callable[[], dict[str, Any]]] = {}
    if given.minutes is not None:
        jobs[f"{given.minutes:g} minutes / 0"] = lambda: ours(given.root, [f"train.minutes={given.minutes}"])
    else:
        for seed in given.seeds:
            jobs[f"ours / {seed}"] = lambda seed=seed: ours(given.root, [f"train.steps={given.steps}", f"seed={seed}"])  # type: ignore[misc]
            for name in given.recipes if given.peer else []:
                jobs[f"peer, {name} / {seed}"] = lambda name=name, seed=seed: peer(
                    given.peer, given.root, name, given.steps, seed
                )  # type: ignore[misc]
    for key, job in jobs.items():
        if key not in done:
            found = job()
            done = (json.loads(given.out.read_text()) if given.out.is_file() else {}) | {key: found}
            given.out.write_text(json.dumps(done, indent=2))
            print(key, {name: found[name] for name in METRICS}, flush=True)
    print("\n" + table(done, given.seeds))


if __name__ == "__main__":
    main()
