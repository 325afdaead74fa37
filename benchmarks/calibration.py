"""Does a calibrated threshold hold on classes it has not seen? Random divisions of the classes of a run or a file.

python -m benchmarks.calibration FILE.npz [FILE.npz …] [--targets 0.6 0.7 0.8 0.9] [--divisions 50] [--json FILE]

A file holds `embeddings` and `labels`, such as RUN/test.npz or what `lookalike embed` writes. One half of the classes
calibrates, the other is asked, each image with its class among the others and without. A division counts as reached
where the share of right answers among the sure ones is at least the target. Coverage (the share of answerable images
with a right sure answer) stands beside that of the best thresholds in hindsight: on the chance that answers are judged
by, and on the similarity of the best hit alone. `similarity alone` is calibrated in the same way without the evidence.
"""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lookalike.search.calibration import evidence
from lookalike.search.calibration.thresholds import Calibration, calibrate
from lookalike.search.calibration.trials import Trials, among_themselves

FACTS: dict[str, Any] = {"items": 0, "generation": 1, "date": "", "source": "run"}


def scores_of(trials: Trials, calibration: Calibration) -> np.ndarray:
    if trials.evidence is None:
        return trials.similarities
    return evidence.chance(trials.evidence, calibration.weights)


def best_coverage(trials: Trials, scores: np.ndarray, target: float) -> float:
    """The share of answerable queries that the best threshold would have answered rightly."""
    right = trials.right[np.argsort(-scores, kind="stable")].cumsum()
    good = np.flatnonzero(right / np.arange(1, len(right) + 1) >= target)
    return float(right[good[-1]] / trials.present.sum()) if len(good) else 0.0


def judged(here: Trials, there: Trials, target: float) -> dict[str, float]:
    """One division: calibrated on the one half, asked on the other."""
    calibration = calibrate(here, target, **FACTS)
    scores = scores_of(there, calibration)
    accepted = scores >= (np.inf if calibration.sure is None else calibration.sure)
    return {
        "reached": float(not accepted.any() or there.right[accepted].mean() >= target),
        "coverage": float(there.right[accepted].sum() / there.present.sum()),
        "best": best_coverage(there, scores, target),
        "best by similarity": best_coverage(there, there.similarities, target),
        "without a threshold": float(calibration.sure is None),
    }


def measure(vectors: np.ndarray, labels: np.ndarray, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Means over the divisions, for every target, judged by the evidence and by the similarity alone."""
    names, codes = np.unique(labels, return_inverse=True)
    rows: dict[tuple[str, float], list[dict[str, float]]] = {}
    for seed in range(options.first, options.first + options.divisions):
        mine = np.isin(codes, np.random.default_rng(seed).permutation(len(names))[: len(names) // 2])
        here, there = (among_themselves(vectors[part], labels[part].tolist()) for part in (mine, ~mine))
        plain_here, plain_there = replace(here, evidence=None), replace(there, evidence=None)
        for target in options.targets:
            rows.setdefault(("evidence", target), []).append(judged(here, there, target))
            rows.setdefault(("similarity alone", target), []).append(judged(plain_here, plain_there, target))
        print(f"\r{seed - options.first + 1}/{options.divisions} divisions", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return [{"by": by, "target": target} | {key: float(np.mean([row[key] for row in some])) for key in some[0]}
            for (by, target), some in rows.items()]  # fmt: skip


def table(rows: list[dict[str, Any]]) -> str:
    head = ("judged by", "target", "reached", "coverage", "of the best in hindsight",
            "of the best similarity in hindsight", "no threshold")  # fmt: skip
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for row in sorted(rows, key=lambda row: (row["by"], row["target"])):
        shares = [f"{row['coverage'] / row[key]:.0%} of {row[key]:.3f}" if row[key] else "–"
                  for key in ("best", "best by similarity")]  # fmt: skip
        lines.append(f"| {row['by']} | {row['target']:g} | {row['reached']:.0%} | {row['coverage']:.3f} | "
                     f"{' | '.join(shares)} | {row['without a threshold']:.0%} |")  # fmt: skip
    return "\n".join(lines)


def read(file: Path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(file, allow_pickle=False) as content:
        vectors, labels = content["embeddings"].astype(np.float32), content["labels"].astype(str)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12), labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--targets", type=float, nargs="+", default=[0.6, 0.7, 0.8, 0.9])
    parser.add_argument("--divisions", type=int, default=50)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first division")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = {}
    for file in options.files:
        vectors, labels = read(file)
        codes = np.unique(labels, return_inverse=True)[1]
        everything = among_themselves(vectors, labels.tolist(), 2000)
        recall = everything.right[everything.present].mean()
        print(f"\n{file}: {len(vectors):,} images of {codes.max() + 1:,} classes, recall@1 {recall:.3f}, "
              f"{options.divisions} divisions\n", flush=True)  # fmt: skip
        results[str(file)] = measure(vectors, labels, options)
        print(table(results[str(file)]), flush=True)
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
