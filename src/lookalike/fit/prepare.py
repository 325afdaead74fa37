"""What a run computes from its train images before the first step, and from validation images at every validation."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Integer
from torch import Tensor

from lookalike.data import Dataset
from lookalike.evaluation import evaluate
from lookalike.features import (
    CENTRE,
    FeatureViews,
    Maps,
    View,
    embed,
    embed_features,
    embed_maps,
    extract,
    feature_maps,
    feature_views,
    features,
)
from lookalike.models import Model
from lookalike.progress import Progress
from lookalike.recipe import build
from lookalike.recipe.settings import Recipe
from lookalike.training import Plan, principal, train
from lookalike.training.loop import Loop

FOR_COMPONENTS = 2048  # images whose features give the principal components
Read = Callable[[Model, Dataset, Progress | None], Tensor]


def embeddings(
    recipe: Recipe, model: Model, dataset: Dataset, progress: Progress | None = None
) -> Float[Tensor, "n d"]:
    """The model's embeddings of all images; where the head alone learns, only that is computed."""
    if not recipe.head_only:
        return embed(model, dataset, progress)
    return embed_features(model, backbone_features(recipe, model, dataset, progress))


def backbone_features(
    recipe: Recipe, model: Model, dataset: Dataset, progress: Progress | None = None
) -> Float[Tensor, "n width"]:
    """The input of the model's head for all images; from the cache where it does not change."""
    if recipe.features is None or not recipe.head_only:
        return features(model, dataset, progress)
    return extract(model.headless(), dataset, backend=recipe.features.backend, progress=progress)


def train_features(
    recipe: Recipe, model: Model, train: Dataset, progress: Progress | None = None
) -> FeatureViews | None:
    """What is trained on under [features]: features, or maps, of every train image at its centre and in some random
    crops. The crops are the same for all seeds, which share them."""
    table = recipe.features
    if table is None:
        return None
    crop = build.views(recipe, model.preprocessing).train
    further = [View(crop, number) for number in range(1, table.views + 1)]
    if table.upto is not None:
        maps = maps_of(recipe, model, train, (CENTRE, *further), progress)
        return FeatureViews(maps.rows, train.labels, recipe.seed, maps.shape)
    return feature_views(model, train, further, seed=recipe.seed, backend=table.backend, progress=progress)


def maps_of(
    recipe: Recipe, model: Model, dataset: Dataset, views: Sequence[View] = (CENTRE,), progress: Progress | None = None
) -> Maps:
    """The maps after the stages that features.upto freezes."""
    table = recipe.features
    assert table is not None
    assert table.upto is not None
    return feature_maps(
        model, dataset, table.upto, views, half=table.half is not False, backend=table.backend, progress=progress
    )


def embedding_of(recipe: Recipe, model: Model, dataset: Dataset) -> Callable[[], Float[Tensor, "n d"]]:
    """A function that embeds the same images each time with the weights of the moment."""
    if recipe.features is None:
        return lambda: embed(model, dataset)
    if recipe.features.upto is not None:
        maps, upto = maps_of(recipe, model, dataset), recipe.features.upto
        return lambda: embed_maps(model, maps, upto)
    points = backbone_features(recipe, model, dataset)
    return lambda: embed_features(model, points)


def needs_features(recipe: Recipe) -> bool:
    """Whether the head starts from features."""
    return recipe.model.head == "principal" or recipe.head.steps > 0


def for_components(recipe: Recipe, dataset: Dataset) -> Dataset:
    """The images whose features give the principal components."""
    return _sample(recipe, dataset, min(FOR_COMPONENTS, len(dataset)))


def _sample(recipe: Recipe, dataset: Dataset, count: int) -> Dataset:
    rows = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(recipe.seed))[:count]
    return dataset.subset(rows.sort().values)


def prepare_head(
    recipe: Recipe, model: Model, dataset: Dataset, progress: Progress | None = None, read: Read | None = None
) -> None:
    """Start the head from features where the recipe says so."""
    if not needs_features(recipe):
        return
    sample = _sample(recipe, dataset, len(dataset)) if recipe.head.steps else for_components(recipe, dataset)
    points = read(model, sample, progress) if read else backbone_features(recipe, model, sample, progress)
    start_head(recipe, model, LabelledFeatures(points, sample.labels, sample.chances))


class LabelledFeatures(NamedTuple):
    """The features of images, one row each, their labels, and the chances of these where they weigh."""

    points: Float[Tensor, "n width"]
    labels: Integer[Tensor, " n"]
    chances: Float[Tensor, " n"] | None = None

    def of(self, rows: Any) -> "LabelledFeatures":
        """Those in some rows, by number, mask or slice."""
        chances = None if self.chances is None else self.chances[rows]
        return LabelledFeatures(self.points[rows], self.labels[rows], chances)


def start_head(recipe: Recipe, model: Model, taught: LabelledFeatures) -> None:
    """The head from principal components, or trained alone, as [model] and [head] say."""
    if recipe.model.head == "principal":
        principal(build.embedder_of(model), taught.points)
    if recipe.head.steps:
        train(build.head_loop(recipe, model, *taught), Plan(recipe.head.steps, seed=recipe.seed))


def fill_bank(recipe: Recipe, loop: Loop, model: Model, dataset: Dataset, progress: Progress | None = None) -> None:
    """Embed every train image, for samplers that choose by embeddings."""
    if loop.bank is not None:
        loop.bank.update(torch.arange(len(dataset)), embeddings(recipe, model, dataset, progress))


class Validation:
    """The measurement on validation classes; the embeddings of the last validation serve whoever needs them again."""

    def __init__(self, recipe: Recipe, model: Model, dataset: Dataset) -> None:
        self.metrics = sorted({"recall@1", "map@r", recipe.train.plan.select})
        self.geometry: Any = model.geometry
        self.dataset, self.embed = dataset, embedding_of(recipe, model, dataset)
        self.last: Tensor | None = None

    def __call__(self) -> Mapping[str, float]:
        self.last = self.embed()
        return evaluate(self.last, self.dataset.supervision, metrics=self.metrics, normalise=self.geometry)

    def embedded(self) -> tuple[Float[Tensor, "n d"], Integer[Tensor, " n"]]:
        """The images as they were last embedded, or, before the first step, as they are now."""
        return self.embed() if self.last is None else self.last, self.dataset.labels
