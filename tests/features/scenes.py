"""A small model and a small data set, and a process that embeds it: `python -m tests.features.scenes DIE_AFTER`."""

import os
import signal
import sys
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


def main(die_after: int) -> None:
    """Embed everything in small blocks; prints how many vectors this process wrote.

    With WAIT_FOR in the environment it begins when that file is there, and takes its time.
    """
    store.BLOCK = 16
    write, written = store.Store._write, []

    def counted(self, bucket, digests, vectors):
        written.extend(digests)
        write(self, bucket, digests, vectors)

    def progress(done, _):
        if done >= die_after:
            os.kill(os.getpid(), signal.SIGKILL)
        if "WAIT_FOR" in os.environ:
            time.sleep(0.1)

    store.Store._write = counted
    network, data = model(), dataset()
    print("ready", flush=True)
    while "WAIT_FOR" in os.environ and not Path(os.environ["WAIT_FOR"]).exists():
        time.sleep(0.01)
    extract(network, data, progress=progress)
    print(len(written))


if __name__ == "__main__":
    main(int(sys.argv[1]))
