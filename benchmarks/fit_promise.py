"""What `lookalike fit` promises: always a model, none worse than the best baseline, in the time it is given.

    python -m benchmarks.fit_promise DATA [--minutes 3 6 10] [--busy-minutes 3] [--seeds 1] [--only Grocery]
        [--out FILE.json]

DATA holds CUB_200_2011, cars196, grocery and Omniglot's images_background and images_evaluation, unpacked. Every cell
is one run of the command line with an empty cache, as a new user would start it; the busy ones have two processes
beside them that never rest. Finished cells are kept in FILE.json, and a second call goes on from there.

A difference is called worse where its interval over classes lies below 0. A budget is kept where the run takes at least
90% of it, unless nothing could be gained (validation is saturated or stopped improving, or too few classes validate),
and at most max(5%, 20 s) more. "first model" are the seconds until RUN/model is there.

Photos have one baseline more, computed by hand: whitened EfficientNet-lite0 features at 224 pixels, on the test photos
of the run, taught by all photos of other classes.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch

from lookalike import data
from lookalike.evaluation import Result, compare, evaluate
from lookalike.evaluation.table import aligned
from lookalike.features import extract
from lookalike.files import read_arrays
from lookalike.geometry import normalise
from lookalike.models import Architecture, Model, available
from lookalike.models.whitening import whitening
from lookalike.runs import RunFolder
from lookalike.runs.finished import load_results

METRICS = ("recall@1", "map@r")
BURN = "while True: pass"
POLL = 0.5  # seconds
BY_HAND, WHITENED = "efficientnet_lite0", "whitened lite0 at 224"
NOTHING_TO_GAIN = ("no better validation in", "cannot tell a trained network from luck", "is above 0.98 without it")


class Cell(NamedTuple):
    """One run: on which data, for how long, and beside whom."""

    data: str
    minutes: float
    busy: bool
    seed: int = 0

    @property
    def name(self) -> str:
        seed = f", seed {self.seed}" if self.seed else ""
        return f"{self.data}, {self.minutes:g} min{', busy' if self.busy else ''}{seed}"


def sources(data: Path, place: Path) -> dict[str, str]:
    """What `fit` is given, by name; random products are a table of their photos."""
    found = {"glyphs": "glyphs"}
    if (data / "CUB_200_2011").is_dir():
        found["CUB"] = str(data / "CUB_200_2011")
    if (data / "cars196").is_dir():
        found["Cars"] = str(data / "cars196")
    if (data / "images_background").is_dir():
        found["Omniglot"] = f"omniglot={data}"
    grocery = data / "grocery"
    if grocery.is_dir():
        found["Grocery, 81"] = str(grocery)
        products = sorted(path for path in grocery.iterdir() if path.is_dir())
        for count in (27, 12):
            chosen = random.Random(count).sample(products, count)
            lines = [f"{photo},{product.name}" for product in chosen for photo in sorted(product.glob("*.jpg"))]
            table = place / f"grocery_{count}.csv"
            table.write_text("\n".join(["path,label", *lines]) + "\n", encoding="utf-8")
            found[f"Grocery, {count}"] = str(table)
    return found


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    """Processes that use as much of the machine as they get."""
    burning = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(count)]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
            process.wait()


def measured(cell: Cell, source: str, place: Path) -> dict[str, Any]:
    """One run from an empty cache, and what its folder says."""
    out = place / "run"
    command = [sys.executable, "-m", "lookalike", "fit", source, "--out", str(out), "--minutes", f"{cell.minutes:g}"]
    command += ["--set", f"seed={cell.seed}"] if cell.seed else []
    environment, log = os.environ | {"LOOKALIKE_CACHE": str(place / "cache")}, place / "log.txt"
    first_model = None
    with neighbours(2 if cell.busy else 0), log.open("w") as lines:
        start = time.monotonic()
        process = subprocess.Popen(command, env=environment, stdout=lines, stderr=lines)
        while process.poll() is None:
            time.sleep(POLL)
            if first_model is None and (out / "model").is_dir():
                first_model = time.monotonic() - start
        seconds = time.monotonic() - start
    row: dict[str, Any] = {"code": process.returncode, "seconds": seconds, "model": (out / "model").is_dir()}
    row["first_model"] = first_model
    if process.returncode != 0:
        return row | {"error": log.read_text().strip().splitlines()[-1:]}
    content = json.loads((out / "result.json").read_text(encoding="utf-8"))
    row |= {"delivered": content["verdict"]["delivered"], "steps": content["training"]["steps"]}
    row["stopped"] = content["training"]["stopped"]
    row["reasons"] = content["verdict"]["reasons"]
    row["network"] = next(
        (
            {name: each[name] for name in ("backbone", "size")}
            for each in content["verdict"]["networks"]
            if each["chosen"]
        ),
        None,
    )
    model, *others = load_results(RunFolder(out))
    row["figures"] = {metric: model.result[metric] for metric in METRICS}
    baselines = {other.name: other.result for other in others if other.role == "baseline"}
    if row["network"] is not None and available(BY_HAND):
        baselines[WHITENED] = by_hand(source, RunFolder(out), model.result.labels)
    row["against"] = {name: against(result, model.result) for name, result in baselines.items()}
    return row


def by_hand(source: str, run: RunFolder, labels: Sequence[Hashable]) -> Result:
    """Whitened features on the test photos of a run, which have these labels; all photos of other classes teach."""
    photos = data.load(source)
    rows = {photos.images.name(row): row for row in range(len(photos))}
    test = photos.subset(torch.tensor([rows[path] for path in read_arrays(run.test)["paths"].tolist()]))
    train = photos.subset(~torch.isin(photos.labels, test.labels))
    model = Model.create(Architecture(BY_HAND, dim=None), "pretrained").headless()
    teaching, points = (
        normalise(extract(model, data.decoded(part, model.preprocessing.resize or 0), backend="auto"), "sphere")
        for part in (train, test)
    )
    mean = teaching.mean(0)
    vectors = (points - mean) @ whitening(teaching - mean, train.labels)
    return evaluate(vectors, labels, metrics=METRICS)


def against(other: Result, model: Result) -> dict[str, list[float]]:
    """Of every metric the other's value, and what the model has more, with its interval over classes."""
    gaps = compare({"other": other, "model": model}, METRICS, over="classes").differences
    return {gap.metric: [other[gap.metric], gap.difference, gap.low, gap.high] for gap in gaps if gap.name == "model"}


def broken_promises(cell: Cell, row: dict[str, Any]) -> list[str]:
    broken = [] if row["model"] and row["code"] == 0 else ["no model"]
    for name, gaps in row.get("against", {}).items():
        broken += [f"{metric} below {name}" for metric, gap in gaps.items() if gap[3] < 0]
    budget = 60 * cell.minutes
    reasons = [str(row.get("stopped", "")), *row.get("reasons", [])]
    early = any(word in reason for word in NOTHING_TO_GAIN for reason in reasons)
    if row["seconds"] < 0.9 * budget and not early:
        broken.append("unused time")
    if row["seconds"] > budget + max(0.05 * budget, 20):
        broken.append("overrun")
    return broken


def table(rows: dict[str, Any]) -> list[str]:
    gains = ["gain", f"gain over {WHITENED}"]
    lines = [["data, minutes", *METRICS, "best baseline", *gains, "first model, s", "s", "steps", "delivered", ""]]
    for name, row in rows.items():
        first = "" if row.get("first_model") is None else f"{row['first_model']:.0f}"
        seconds = f"{row['seconds']:.0f}"
        if "figures" not in row:
            lines.append([name, *[""] * 5, first, seconds, "", str(row.get("error")), "no model"])
            continue
        own = {other: gaps for other, gaps in row["against"].items() if other != WHITENED}
        best = max(own.values(), key=lambda gaps: gaps["map@r"][0])
        figures = [f"{row['figures'][metric]:.3f}" for metric in METRICS]
        base = " / ".join(f"{best[metric][0]:.3f}" for metric in METRICS)
        differences = [gain(best), gain(row["against"].get(WHITENED, {}))]
        facts = [first, seconds, str(row["steps"]), row["delivered"]]
        lines.append([name, *figures, base, *differences, *facts, ", ".join(row["broken"]) or "kept"])
    return aligned(lines)


def gain(gaps: dict[str, list[float]]) -> str:
    """Of every metric, with its interval."""
    return "; ".join(f"{more:+.3f} [{low:+.3f}, {high:+.3f}]" for _, more, low, high in gaps.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--minutes", type=float, nargs="*", default=[3.0, 6.0, 10.0])
    parser.add_argument("--busy-minutes", type=float, nargs="*", default=[3.0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", default="", help="part of the names of the cells to run")
    parser.add_argument("--out", type=Path, default=Path("fit_promise.json"))
    settings = parser.parse_args()
    rows: dict[str, Any] = json.loads(settings.out.read_text()) if settings.out.is_file() else {}
    with TemporaryDirectory() as place:
        found = sources(settings.data.resolve(), Path(place))
        runs = [*product([False], settings.minutes), *product([True], settings.busy_minutes)]
        every = product(runs, found, range(settings.seeds))
        todo = [Cell(data, minutes, busy, seed) for (busy, minutes), data, seed in every]
        cells = {cell.name: cell for cell in todo}
        for name, cell in cells.items():
            if name in rows or settings.only not in name:
                continue
            with TemporaryDirectory(dir=place) as own:
                rows[name] = measured(cell, found[cell.data], Path(own))
            rows[name]["broken"] = broken_promises(cell, rows[name])
            settings.out.write_text(json.dumps(rows, indent=2), encoding="utf-8")
            print(table({name: rows[name]})[1], file=sys.stderr, flush=True)
        print("\n".join(table(rows)))


if __name__ == "__main__":
    main()
