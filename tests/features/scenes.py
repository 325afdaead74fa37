"""A small model and a small data set, and a process that embeds it: `python -m tests.features.scenes DIE_AFTER`."""

import os
import signal
import time
from pathlib import Path

import numpy as np

from lookalike.data import arrays
from lookalike.features import extract, store
from lookalike.models import Architecture, Model

ROWS = 150


def model(seed=0, **settings):
    return Model.create(Architecture("conv4", {"channels": 1, "width": 8}, dim=32, **settings), seed=seed)


def images(rows=ROWS):
    return np.random.default_rng(0).integers(0, 256, (rows, 20, 24), dtype=np.uint8)


def dataset(rows=ROWS):
    return arrays(images(rows), [f"class {row // 5}" for row in range(rows)])


def meet(what: str) -> None:
    """Wait until two processes have come so far."""
    if "MEET" in os.environ:
        folder, until = Path(os.environ["MEET"]), time.monotonic() + 200
        (folder / f"{what}-{os.getpid()}").touch()
        while len(list(folder.glob(f"{what}-*"))) < 2:
            assert time.monotonic() < until, f"no other process {what}"
            time.sleep(0.01)


def main(die_after: int) -> None:
    """Embed everything in small blocks; prints how many vectors this process wrote.

    With MEET in the environment, two processes meet in that folder before they begin and after their first files.
    """
    store.BLOCK = 16
    write, written = store.FeatureStore._write, []

    def counted(self, bucket, digests, vectors):
        written.extend(digests)
        write(self, bucket, digests, vectors)
        meet("wrote")

    def progress(done, _):
        if done >= die_after:
            os.kill(os.getpid(), signal.SIGKILL)

    store.FeatureStore._write = counted
    network, data = model(), dataset()
    meet("ready")
    extract(network, data, progress=progress)
    print(len(written))
