"""What happens to a run's objects before the first step and at every validation."""

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


def begin_head(recipe: Recipe, model: Model, part: Dataset, progress: Progress | None = None) -> float | None:
    """Start the head from features where the recipe says so; the images embedded per second on the way."""
    if not needs_features(recipe):
        return None
    count = len(part) if recipe.head.steps else min(FOR_COMPONENTS, len(part))
    rows = torch.randperm(len(part), generator=torch.Generator().manual_seed(recipe.seed))[:count]
    chosen = part.subset(rows.sort().values)
    start = time.monotonic()
    points = features(model, chosen, progress)
    rate = len(points) / (time.monotonic() - start)
    if recipe.model.head == "principal":
        principal(build.embedder_of(model), points)
    if recipe.head.steps:
        train(build.head_loop(recipe, model, points, chosen.labels), Plan(recipe.head.steps, seed=recipe.seed))
    return rate


def fill_bank(loop: Loop, model: Model, part: Dataset, progress: Progress | None = None) -> None:
    """What the network says of every train image, for samplers that choose by it."""
    if loop.bank is not None:
        loop.bank.update(torch.arange(len(part)), embed(model, part, progress))


def validation(recipe: Recipe, model: Model, held: Dataset | None) -> Callable[[], Mapping[str, float]] | None:
    """What to ask the validation classes, if there are any."""
    if held is None:
        return None
    wanted = sorted({"recall@1", "map@r", recipe.train.plan.select})
    geometry: Any = model.geometry
    return lambda: evaluate(embed(model, held), held.labels, metrics=wanted, normalise=geometry)
