"""k-means of the size that NMI on Stanford Online Products needs: ours in torch beside faiss, same start, same data.

python -m benchmarks.kmeans [--rows 60502] [--clusters 11316] [--width 128] [--iterations 20] [--json FILE]
"""

import argparse
import json
import time
from typing import Any, Literal

import torch

from benchmarks.evaluation import embeddings
from benchmarks.options import reader
from lookalike.cluster import k_means


def run(points: torch.Tensor, options: argparse.Namespace, backend: Literal["torch", "faiss"]) -> dict[str, Any]:
    start = time.perf_counter()
    found = k_means(points, options.clusters, iterations=options.iterations, backend=backend)
    seconds = time.perf_counter() - start
    return {"backend": backend, "seconds": seconds, "objective": found.objective}


def main() -> None:
    options = reader(__doc__, rows=60_502, clusters=11_316, width=128, iterations=20).parse_args()
    points, _ = embeddings(options.rows, options.clusters, options.width, 0.7)
    rows = [run(points, options, backend) for backend in ("torch", "faiss")]
    ours, theirs = rows
    print(f"{options.rows:,} × {options.width}, {options.clusters:,} clusters, {options.iterations} iterations")
    for row in rows:
        print(f"{row['backend']:<6} {row['seconds']:7.1f} s   objective {row['objective']:.1f}")
    print(f"torch / faiss: {ours['seconds'] / theirs['seconds']:.2f}× the time")
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
