"""Many workers on one folder of shards, some of them killed: every image once, equal to one worker's result.

    python -m benchmarks.workers [--images 100000] [--shards 200] [--workers 4] [--kills 2] [--folder F] [--json FILE]

Glyphs with noise of their own are written as PNG files. One worker embeds them with a small network; then several
workers, started as anyone starts them, embed them again. Of these, some are killed with SIGKILL at random moments and
started again. Ids, labels, stamps and vectors of the two results are compared. Exit code 1 if anything differs.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.options import reader
from lookalike.data import glyphs
from lookalike.features import Shards
from lookalike.models import Architecture, Model

Figures = dict[str, Any]


def draw(folder: Path, count: int) -> None:
    """So many different glyphs, in one folder per class; what is there already stays."""
    data = glyphs()
    noise = np.random.default_rng(0)
    for number in range(count):
        row = number % len(data)
        place = folder / f"class {int(data.labels[row]):04d}" / f"{number:06d}.png"
        pixels = data.images.open(row).decode()[0].numpy()
        grain = noise.integers(-8, 9, pixels.shape)
        if not place.is_file():
            place.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.clip(pixels + grain, 0, 255).astype(np.uint8)).save(place)


def start(model: Path, photos: Path, out: Path, shards: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "lookalike", "embed", str(model), str(photos), "--out", str(out)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*command, "--shards", str(shards), "--backend", "torch"], stdout=subprocess.DEVNULL, env=environment
    )


def timed(workers: list[subprocess.Popen[bytes]]) -> float:
    began = time.monotonic()
    for worker in workers:
        if worker.wait() != 0:
            raise SystemExit(f"a worker ended with {worker.returncode}")
    return time.monotonic() - began


def with_kills(model: Path, photos: Path, out: Path, given: argparse.Namespace) -> Figures:
    """All workers at once; at random shares of the work one of them is killed and started again."""
    chance = random.Random(given.seed)
    shares = sorted(chance.uniform(0.05, 0.9) for _ in range(given.kills))
    began = time.monotonic()
    workers = [start(model, photos, out, given.shards) for _ in range(given.workers)]
    moments = []
    for number, share in enumerate(shares):
        victim = number % given.workers
        while workers[victim].poll() is None and len(list(out.glob("*.npz"))) < share * given.shards:
            time.sleep(0.02)
        time.sleep(chance.uniform(0, given.pause))  # anywhere within a shard
        at = len(list(out.glob("*.npz")))
        workers[victim].send_signal(signal.SIGKILL)
        moments.append({"shards": at, "code": workers[victim].wait()})
        workers[victim] = start(model, photos, out, given.shards)
    timed(workers)
    return {"seconds": time.monotonic() - began, "kills": moments}


def compared(one: Shards, many: Shards) -> Figures:
    """Whether the two results are the same."""
    first, second = one.joined(), many.joined()
    ids = second["ids"].tolist()
    return {
        "images": len(ids),
        "every_image_once": len(ids) == len(set(ids)) == one.plan.images,
        "columns_equal": sorted(first) == sorted(second)
        and all(np.array_equal(first[name], second[name]) for name in first),
        "vectors_equal": np.array_equal(first["embeddings"], second["embeddings"]),
        "files_equal": all(
            one.path(number).read_bytes() == many.path(number).read_bytes() for number in range(one.plan.shards)
        ),
        "left_over": len([path for path in many.folder.rglob("*") if path.name.startswith(".")])
        + len(list(many.claims.iterdir())),
    }


def measure(place: Path, given: argparse.Namespace) -> Figures:
    photos, model = place / "glyphs", place / "model"
    draw(photos, given.images)
    Model.create(Architecture("conv4", {"channels": 1, "width": 16}, dim=32)).save(model)
    alone = timed([start(model, photos, place / "one", given.shards)])
    many = with_kills(model, photos, place / "many", given)
    result = compared(Shards.open(place / "one"), Shards.open(place / "many"))
    return {"shards": given.shards, "workers": given.workers, "one_worker_seconds": alone, **many, **result}


def main() -> None:
    parser = reader(__doc__, images=100_000, shards=200, workers=4, kills=2, seed=0)
    parser.add_argument("--pause", type=float, default=2.0, help="longest wait before a kill, in seconds")
    parser.add_argument("--folder", type=Path, help="keep everything here instead of in a temporary folder")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        figures = measure(given.folder or Path(temporary), given)
    print(json.dumps(figures, indent=2))
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2) + "\n")
    sound = figures["every_image_once"] and figures["columns_equal"] and figures["vectors_equal"]
    sys.exit(0 if sound and figures["left_over"] == 0 else 1)


if __name__ == "__main__":
    main()
