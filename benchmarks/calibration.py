"""Does a calibrated threshold hold on classes it has not seen? Random divisions of the classes of a run or a file.

python -m benchmarks.calibration FILE.npz [FILE.npz …] [--targets 0.7 0.8 0.9] [--divisions 50] [--json FILE]

A file holds `embeddings` and `labels`, such as RUN/test.npz or what `lookalike embed` writes. One half of the classes
calibrates, the other is asked; coverage is compared with that of the best threshold in hindsight.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.search.calibration import Trials, calibrate
from lookalike.search.trials import among_themselves

FACTS: dict[str, Any] = {"items": 0, "generation": 1, "date": "", "source": "run"}


def best_coverage(trials: Trials, target: float) -> float:
    """The share of answerable queries that the best threshold would have answered rightly."""
    right = trials.right[np.argsort(-trials.similarities)].cumsum()
    good = np.flatnonzero(right / np.arange(1, len(right) + 1) >= target)
    return float(right[good[-1]] / trials.present.sum()) if len(good) else 0.0


def measure(vectors: np.ndarray, labels: np.ndarray, targets: list[float], divisions: int) -> list[dict[str, Any]]:
    names, codes = np.unique(labels, return_inverse=True)
    halves = []
    for seed in range(divisions):
        mine = np.isin(codes, np.random.default_rng(seed).permutation(len(names))[: len(names) // 2])
        halves.append(tuple(among_themselves(vectors[part], labels[part].tolist()) for part in (mine, ~mine)))
    rows = []
    for target in targets:
        reached, coverage, best, silent = [], [], [], 0
        for here, there in halves:
            sure = calibrate(here, target, **FACTS).sure
            accepted = there.similarities >= (np.inf if sure is None else sure)
            silent += sure is None
            reached.append(not accepted.any() or there.right[accepted].mean() >= target)
            coverage.append(there.right[accepted].sum() / there.present.sum())
            best.append(best_coverage(there, target))
        rows.append({"target": target, "reached": float(np.mean(reached)), "coverage": float(np.mean(coverage)),
                     "best": float(np.mean(best)), "without a threshold": silent})  # fmt: skip
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--targets", type=float, nargs="+", default=[0.7, 0.8, 0.9])
    parser.add_argument("--divisions", type=int, default=50)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = {}
    for file in options.files:
        with np.load(file, allow_pickle=False) as content:
            vectors, labels = content["embeddings"].astype(np.float32), content["labels"].astype(str)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        print(f"{file}: {len(vectors):,} images of {len(np.unique(labels)):,} classes, {options.divisions} divisions")
        results[str(file)] = measure(vectors, labels, options.targets, options.divisions)
        for row in results[str(file)]:
            share = row["coverage"] / row["best"] if row["best"] else 0.0
            print(f"target {row['target']:.2f}: reached in {row['reached']:.0%}, coverage {row['coverage']:.3f} of "
                  f"{row['best']:.3f} ({share:.0%}), no threshold in {row['without a threshold']}")  # fmt: skip
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
