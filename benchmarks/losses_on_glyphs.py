"""All losses of the catalogue on glyphs: the same network, batches and steps, three seeds, unseen characters.

    python -m benchmarks.losses_on_glyphs [--steps 100] [--seeds 0 1 2] [--losses NAME …] [--out FILE.json]

Each run is a cheaper version of the default recipe for small images (32 filters, batches of 16 classes of 8) with the
loss, the miner and the learning rate that its test file names (tests/losses). All runs are equally long and measured on
characters that no network was trained on. Finished runs are stored in FILE.json: a second call resumes, and several
processes may share one file with different --losses. `--table` only prints.
"""

import argparse
import fcntl
import json
import statistics
from pathlib import Path
from typing import Any

from benchmarks.trial import trial
from lookalike import losses
from lookalike.cli.allocator import keep_memory
from lookalike.evaluation.statistics.seeds import spread_of
from lookalike.fit.choose import choose
from lookalike.protocols.class_disjoint import parts
from tests.losses.facts import training


def run(name: str, seed: int, steps: int) -> dict[str, Any]:
    fixed = [
        "model.width=32",
        "sampler.batch_size=128",
        f"train.steps={steps}",
        f"train.validate_every={steps}",
        f"seed={seed}",
        "data.validation=0",
    ]
    dataset, recipe, _ = choose("glyphs", None, [*training(name), *fixed])
    result = trial(recipe, parts(dataset, recipe.data.test, 0.0, seed))
    del result["per_query"]
    return result


def read(out: Path) -> dict[str, Any]:
    return dict(json.loads(out.read_text())) if out.is_file() else {}


def store(out: Path, key: str, result: dict[str, Any]) -> None:
    with out.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        out.write_text(json.dumps(read(out) | {key: result}, indent=1))


def table(done: dict[str, Any]) -> str:
    """Mean over seeds with a 95% interval (Student's t), the best first."""
    rows = []
    for name in losses.names():
        runs = [cell["metrics"] for key, cell in done.items() if key.split(" / ")[0] == name]
        if runs:
            rows.append((name, {m: [metrics[m] for metrics in runs] for m in ("recall@1", "map@r", "rho")}, len(runs)))
    rows.sort(key=lambda row: -statistics.mean(row[1]["map@r"]))
    lines = ["| loss | changes to the default recipe | recall@1 | map@r | rho | seeds |", "|---|---|---|---|---|---|"]
    for name, values, count in rows:
        changes = ", ".join(f"`{text}`" for text in training(name)[1:])
        lines.append(f"| {name} | {changes} | {' | '.join(spread(values[m]) for m in values)} | {count} |")
    return "\n".join(lines)


def spread(values: list[float]) -> str:
    over = spread_of(values)
    return f"{over.mean:.3f}" if over.over_seeds is None else f"{over.mean:.3f} ± {over.over_seeds[1] - over.mean:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--losses", nargs="+", default=losses.names())
    parser.add_argument("--out", type=Path, default=Path("losses_on_glyphs.json"))
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    keep_memory()
    for seed in options.seeds if not options.table else []:
        for name in options.losses:
            key = f"{name} / {seed}"
            if key not in read(options.out):
                result = run(name, seed, options.steps)
                store(options.out, key, result)
                metrics = {metric: round(value, 4) for metric, value in result["metrics"].items()}
                print(f"{key:<28} {metrics}  {result['seconds']:.0f} s", flush=True)
    print("\n" + table(read(options.out)))


if __name__ == "__main__":
    main()
