"""What a run computes from its train images before the first step, and from its validation images at every look."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

from lookalike.data import Dataset
from lookalike.evaluation import evaluate
from lookalike.features import embed, features
from lookalike.models import Model
from lookalike.recipe import build
from lookalike.recipe.settings import Recipe
from lookalike.training import Plan, principal, train
from lookalike.training.loop import Loop

FOR_COMPONENTS = 2048  # images whose features give the principal components
Progress = Callable[[int, int], None]


def needs_features(recipe: Recipe) -> bool:
    """Whether the head starts from features."""
    return recipe.model.head == "principal" or recipe.head.steps > 0


def prepare_head(recipe: Recipe, model: Model, dataset: Dataset, progress: Progress | None = None) -> float | None:
    """Start the head from features where the recipe says so; the images embedded per second on the way."""
    if not needs_features(recipe):
        return None
    count = len(dataset) if recipe.head.steps else min(FOR_COMPONENTS, len(dataset))
    rows = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(recipe.seed))[:count]
    sample = dataset.subset(rows.sort().values)
    start = time.monotonic()
    points = features(model, sample, progress)
    rate = len(points) / (time.monotonic() - start)
    if recipe.model.head == "principal":
        principal(build.embedder_of(model), points)
    if recipe.head.steps:
        train(build.head_loop(recipe, model, points, sample.labels), Plan(recipe.head.steps, seed=recipe.seed))
    return rate


def fill_bank(loop: Loop, model: Model, dataset: Dataset, progress: Progress | None = None) -> None:
    """Embed every train image, for samplers that choose by embeddings."""
    if loop.bank is not None:
        loop.bank.update(torch.arange(len(dataset)), embed(model, dataset, progress))


def validation(recipe: Recipe, model: Model, dataset: Dataset | None) -> Callable[[], Mapping[str, float]] | None:
    """The measurement on validation classes, if there are any."""
    if dataset is None:
        return None
    metrics = sorted({"recall@1", "map@r", recipe.train.plan.select})
    geometry: Any = model.geometry
    return lambda: evaluate(embed(model, dataset), dataset.labels, metrics=metrics, normalise=geometry)
