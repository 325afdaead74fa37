"""`scripts/attack [PART …]`: run the trials, print a table; exit code 1 if anything was found."""

import argparse
import os
import random
import sys
import tempfile
import warnings
from importlib import import_module
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from lookalike.evaluation.table import aligned
from tests.attacks.outcomes import FINDINGS, Outcomes

COUNTS = {
    "losses": 90_000,
    "miners": 12_000,
    "samplers": 6_000,
    "evaluate": 6_000,
    "files": 1,
    "models": 1,
    "runs": 1,
    "kills": 40,
    "servers": 20,
    "histories": 1_000,
    "caches": 5_000,
    "strangers": 200,
    "writers": 100,
    "pictures": 1_000,
    "pipelines": 100,
    "postgres_writers": 40,
    "upgrades": 20,
    "postgres_upgrades": 20,
    "reviews": 100,
}

MODULES = {
    "losses": "batches",
    "miners": "batches",
    "samplers": "sets",
    "evaluate": "sets",
    "files": "damage",
    "models": "damage",
    "runs": "damage",
    "kills": "kills",
    "servers": "servers",
    "histories": "indexes",
    "caches": "indexes",
    "strangers": "indexes",
    "writers": "writers",
    "pictures": "pictures",
    "pipelines": "pipelines",
    "postgres_writers": "writers",
    "upgrades": "upgrades",
    "postgres_upgrades": "upgrades",
    "reviews": "reviews",
}

ANYWHERE = (
    "histories",
    "caches",
    "strangers",
    "writers",
    "pictures",
    "pipelines",
    "postgres_writers",
    "upgrades",
    "postgres_upgrades",
    "reviews",
)  # what is tried is new every time


def main() -> None:
    reader = argparse.ArgumentParser(prog="scripts/attack", description=__doc__)
    reader.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(COUNTS)}; all of them by default")
    reader.add_argument("--count", type=int, help="trials of each part, instead of all")
    reader.add_argument("--minutes", type=float, default=float("inf"), help="stop each part after this many")
    reader.add_argument(
        "--first",
        type=int,
        help="the number of the first trial, to repeat a finding; those of "
        f"{', '.join(ANYWHERE)} begin at a random one",
    )
    given = reader.parse_args()
    unknown = [part for part in given.parts if part not in COUNTS]
    if unknown:
        reader.error(f"there is no part {unknown[0]!r}: choose from {', '.join(COUNTS)}")
    torch.set_num_threads(1)
    warnings.simplefilter("error")
    rows, notes = [], []
    with tempfile.TemporaryDirectory(prefix="lookalike-attack-") as place:
        os.environ["LOOKALIKE_CACHE"] = str(Path(place) / "cache")
        for part in given.parts or COUNTS:
            outcomes = Outcomes(part, given.minutes)
            first = given.first if given.first is not None else random.randrange(10**9) if part in ANYWHERE else 0
            print(f"{part}: trials from {first}", file=sys.stderr, flush=True)
            run(part, outcomes, first, given.count or COUNTS[part], Path(place))
            rows.append(row(outcomes))
            notes += outcomes.notes
            print(rows[-1], file=sys.stderr, flush=True)
    print("\n".join(aligned([["part", "trials", "answered", "refused in one line", *FINDINGS, "seconds"], *rows])))
    print("\n".join(notes), end="\n" if notes else "")
    sys.exit(1 if notes else 0)


def run(part: str, outcomes: Outcomes, first: int, count: int, place: Path) -> None:
    work = getattr(import_module(f"tests.attacks.{MODULES[part]}"), f"{part}_hold")
    work(outcomes, first, count, place)


def row(outcomes: Outcomes) -> list[str]:
    counts = [outcomes.counts[kind] for kind in ("answered", "refused", *FINDINGS)]
    return [outcomes.kind, f"{outcomes.trials:,}", *(f"{number:,}" for number in counts), f"{outcomes.seconds:.0f}"]


if __name__ == "__main__":
    main()
