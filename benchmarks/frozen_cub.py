"""Frozen features on CUB-200-2011, classes 101–200: what a published backbone knows before any training.

    python -m benchmarks.frozen_cub PATH/CUB_200_2011 [--backbone NAME] [--crop 128] [--resize 144] [--json FILE]

Reads the official layout. The crop is the centre of the image whose shorter side is `--resize`.
"""

import argparse
import json
import time
from pathlib import Path

from lookalike import evaluate
from lookalike.models import Architecture, Model


def unseen(root: Path) -> tuple[list[Path], list[int]]:
    """Paths and classes of the second half of the classes."""
    names = [line.split()[1] for line in (root / "images.txt").read_text().splitlines()]
    classes = [int(line.split()[1]) for line in (root / "image_class_labels.txt").read_text().splitlines()]
    chosen = [(root / "images" / name, label) for name, label in zip(names, classes, strict=True) if label > 100]
    return [path for path, _ in chosen], [label for _, label in chosen]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path)
    parser.add_argument("--backbone", default="efficientnet_lite0")
    parser.add_argument("--crop", type=int, default=128)
    parser.add_argument("--resize", type=int, default=144)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    paths, labels = unseen(given.root)
    model = Model.create(Architecture(given.backbone, dim=None), weights="pretrained")
    model.preprocessing = model.preprocessing.sized(given.crop, given.resize)
    start = time.perf_counter()
    embeddings = model.encode(paths)
    seconds = time.perf_counter() - start
    result = evaluate(embeddings, labels, metrics=["recall@1", "map@r"])
    row = {
        "backbone": given.backbone,
        "images": len(paths),
        "dim": embeddings.shape[1],
        "recall@1": result["recall@1"],
        "map@r": result["map@r"],
        "images_per_second": len(paths) / seconds,
    }
    print(
        "\n".join(
            f"{name:<18} {value:.4f}" if isinstance(value, float) else f"{name:<18} {value}"
            for name, value in row.items()
        )
    )
    if given.json is not None:
        given.json.write_text(json.dumps(row, indent=2) + "\n")


if __name__ == "__main__":
    main()
