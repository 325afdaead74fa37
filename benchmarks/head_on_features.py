"""A cell of a study on cached features: 2,000 steps of multi-similarity at 1280 → 128, batch 128, and its evaluation.

    python -m benchmarks.head_on_features [--steps 2000] [--views 0] [--loss multi_similarity] [--hidden 512]

The features stand for those of CUB-200-2011 (100 classes of 59 train images, as many to test, 10 to validate): random
centres with noise. Seconds of the clock, split into load, forward, loss, backward and update.
"""

import argparse
import time
from collections import Counter
from typing import Any

import torch
from torch import Tensor

from lookalike.data import arrays
from lookalike.evaluation import evaluate
from lookalike.features import FeatureViews, embed_features
from lookalike.models import Architecture, Embedder, Model, Preprocessing
from lookalike.recipe import build, of_tree
from lookalike.training import train

WIDTH, DIM, EACH = 1280, 128, 59


class NoBackbone(torch.nn.Module):
    """Features are given: only their width is known."""

    width, stages, preprocessing = WIDTH, {"none": ("none.",)}, Preprocessing()

    def forward(self, images: Tensor, after: Any = None) -> Tensor:
        raise NotImplementedError


def features(classes: int, views: int, seed: int) -> tuple[Tensor, Tensor]:
    draw = torch.Generator().manual_seed(seed)
    labels = torch.arange(classes).repeat_interleave(EACH)
    centres = torch.randn(classes, 1, WIDTH, generator=draw)
    return (centres[labels] + 3 * torch.randn(len(labels), views, WIDTH, generator=draw)).relu(), labels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--views", type=int, default=0)
    parser.add_argument("--loss", default="multi_similarity")
    parser.add_argument("--hidden", type=int)
    options = parser.parse_args()
    recipe = of_tree({
        "features": {"views": options.views}, "loss": {"name": options.loss}, "model": {"dim": DIM},
        "sampler": {"name": "class_balanced", "batch_size": 128, "per_class": 4}, "optimiser": {"lr": 1e-3},
        "train": {"steps": options.steps, "validate_every": 50, "device": "cpu"},
    })  # fmt: skip
    points, labels = features(100, options.views + 1, seed=0)
    held, test = (features(classes, 1, seed) for seed, classes in ((1, 10), (2, 100)))
    embedder = Embedder(NoBackbone(), DIM, hidden=options.hidden)
    model = Model(embedder, Preprocessing(), Architecture("conv4"))
    images = arrays(torch.zeros(len(labels), 8, 8, dtype=torch.uint8), labels.tolist())
    loop = build.loop(recipe, model, images, FeatureViews(points, labels))
    laps: Counter[str] = Counter()
    advance = loop.advance

    def timed() -> Any:
        trained = advance()
        laps.update(trained.seconds)
        return trained

    loop.advance = timed  # type: ignore[method-assign]

    def measured(part: tuple[Tensor, Tensor]) -> Any:
        return evaluate(embed_features(model, part[0][:, 0]), part[1], metrics=["recall@1", "map@r"])

    measured(held)  # compiles the counting
    start = time.perf_counter()
    train(loop, build.plan(recipe, options.steps), validate=lambda: measured(held))
    trained = time.perf_counter() - start
    result = measured(test)
    seconds = {name: f"{value:.2f}" for name, value in laps.items()}
    print(
        f"{options.steps} steps: {trained:.1f} s ({seconds}), evaluation {time.perf_counter() - start - trained:.1f} s"
    )
    print(f"recall@1 {result['recall@1']:.3f}, map@r {result['map@r']:.3f}")


if __name__ == "__main__":
    main()
