"""Other views of a photo than its centre when it is embedded: what a flip, two crops and all of it bring and cost.

    python -m benchmarks.index_views DATA [--size 128] [--photos 1500] [--json FILE]

EfficientNet-lite0 with its published weights; features of the views are averaged. The two crops lie at the ends of the
longer side; the whole photo is warped to the square, with the margin of the centre. Classes are halved: the first half
teaches the whitening, recall@1 and map@r are those of the second. Every view costs one pass of the network.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lookalike import data, evaluate
from lookalike.data import Dataset
from lookalike.geometry import normalise
from lookalike.models import Architecture, Model, Preprocessing
from lookalike.models.preprocess import evaluation_view, scale
from lookalike.models.whitening import whitening

WAYS = {
    "centre": [0],
    "centre, flip": [0, 1],
    "two crops": [2, 3],
    "centre, two crops": [0, 2, 3],
    "all four": [0, 1, 2, 3],
    "whole photo": [4],
}


def views(pixels: Tensor, how: Preprocessing) -> Tensor:
    """The centre, its mirror image, the crops at both ends of the longer side, and the whole photo."""
    centre, (height, width) = evaluation_view(pixels, how), pixels.shape[-2:]
    short = min(height, width)
    first, last = pixels[..., :short, :short], pixels[..., height - short :, width - short :]
    ends = [evaluation_view(end, how) for end in (first, last)]
    return scale(torch.stack([centre, centre.flip(-1), *ends, evaluation_view(pixels, replace(how, warp=True))]), how)


def features(model: Model, photos: Dataset) -> Tensor:
    """n × views × width."""
    run = model.backend("auto").run
    rows = [run(views(photos.images.open(row).decode(), model.preprocessing)) for row in range(len(photos))]
    return torch.stack(rows)


def halves(dataset: Dataset, photos: int) -> tuple[Dataset, Dataset]:
    """The first and the second half of the classes, about as many photos of each, the first ones of every class."""
    turn = torch.stack([(dataset.labels[:row] == label).sum() for row, label in enumerate(dataset.labels)])
    some = turn < max(2, 2 * photos // dataset.classes)
    early = dataset.labels < dataset.classes // 2
    return dataset.subset(some & early).dense(), dataset.subset(some & ~early).dense()


def table(source: str, size: int, photos: int) -> list[dict[str, Any]]:
    model = Model.create(Architecture("efficientnet_lite0", dim=None), weights="pretrained").headless()
    model.preprocessing = model.preprocessing.sized(size)
    teachers, tests = halves(data.load(source), photos)
    taught, tested = features(model, teachers), features(model, tests)
    rows = []
    for name, columns in WAYS.items():
        own, other = (normalise(points[:, columns].mean(1), "sphere") for points in (taught, tested))
        mean = own.mean(0)
        white = (other - mean) @ whitening(own - mean, teachers.labels)
        for reading, points in (("frozen", other), ("whitened", white)):
            result = evaluate(points, tests.labels, metrics=["recall@1", "map@r"])
            figures = {metric: result[metric] for metric in ("recall@1", "map@r")}
            rows.append({"views": name, "passes": len(columns), "reading": reading, **figures})
            print(f"{name:<20}{len(columns)} {reading:<10}{figures['recall@1']:.3f} {figures['map@r']:.3f}", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--photos", type=int, default=1500)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows = table(given.data, given.size, given.photos)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
