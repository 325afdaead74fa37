"""[sampler], [optimiser], [schedule] and [train]: the loop around a network and its goal, and the plan of a run."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn

from lookalike import catalog, samplers
from lookalike.data import AugmentedImages, Dataset
from lookalike.errors import check
from lookalike.features import FeatureViews
from lookalike.models import Embedder, Model
from lookalike.models.cut import Rest
from lookalike.models.preprocess import scale
from lookalike.processes import Ranks
from lookalike.recipe.goal import Goal, generators_of, objective, settings_of
from lookalike.recipe.network import device, embedder_of, mixer_of, views
from lookalike.recipe.settings import Optimiser, Recipe
from lookalike.recipe.toml import keys
from lookalike.samplers import BatchSampler, EmbeddingBank
from lookalike.training import Loop, Plan, Schedule, optimisers
from lookalike.training.ccp import ChanceConstraints, ProxyObjective
from lookalike.training.pool import Pool
from lookalike.values import member_settings

AT_MOST = re.compile(r"at most (\d+)")  # a size of batches that the train images limit


def sampler(recipe: Recipe, train: Dataset, bank: EmbeddingBank | None = None) -> BatchSampler:
    """The batch sampler over the train images; `bank` has their embeddings, for samplers that choose by them."""
    table = recipe.sampler
    settings = {"seed": recipe.seed, **settings_of("sampler", samplers.MEMBERS, table)}
    batches = samplers.build(
        table.name,
        table.preset,
        labels=train.drawn_with,
        categories=train.categories,
        bank=bank,
        chances=train.chances,
        **settings,
    )
    batches.check_shares(Ranks.current().count)
    return batches


def bank(recipe: Recipe, train: Dataset, dim: int) -> EmbeddingBank | None:
    """An embedding of `dim` dimensions per train image, for samplers that choose by them; None: this one does not."""
    return EmbeddingBank(len(train), dim) if samplers.needs_bank(recipe.sampler.name) else None


def limits(settings: Mapping[str, Any]) -> dict[str, int]:
    """The settings that say "at most", with their largest values.

    >>> limits({"batch_size": "at most 64", "per_class": 4})
    {'batch_size': 64}
    """
    return {key: int(match[1]) for key, value in settings.items() if (match := AT_MOST.fullmatch(str(value)))}


def optimiser(table: Optimiser, groups: Iterator[dict[str, Any]]) -> torch.optim.Optimizer:
    builder = catalog.member("optimiser", optimisers.MEMBERS, table.name)
    settings = member_settings("optimiser", table.name, builder, table.settings, keys(Optimiser).keys() - {"settings"})
    return optimisers.build(table.name, groups, **settings)


def steps_of(recipe: Recipe, batches: int) -> int:
    """The length of the run, from its steps or from its epochs of `batches` batches."""
    table = recipe.train
    check(table.steps is None or table.epochs is None, "give train.steps or train.epochs, not both")
    if table.steps is None and table.epochs is None:
        check(
            table.minutes is not None, "the recipe does not say how long to train: give train.steps, epochs or minutes"
        )
        return 1  # until the clock has decided
    return table.steps if table.steps is not None else (table.epochs or 0) * batches


def plan(recipe: Recipe, steps: int, seconds: float | None = None, batches: int = 1) -> Plan:
    """How long (`steps`, or until `seconds` are over) and how often it validates; an epoch has `batches` batches."""
    table = recipe.train
    every = table.plan.validate_every if table.validate_epochs is None else table.validate_epochs * batches
    return replace(table.plan, steps=steps, validate_every=every, seconds=seconds, seed=recipe.seed)


def loop(recipe: Recipe, model: Model, train: Dataset, features: FeatureViews | None = None) -> Loop:
    """Everything that learns, ready for its first step; with [features] that is the head, or what follows the frozen
    stages, on the `features` of the train images, and nothing else changes."""
    embedder, rates, how = embedder_of(model), recipe.optimiser, model.preprocessing
    embeddings = bank(recipe, train, embedder.dim)
    batches = sampler(recipe, train, embeddings)
    goal = objective(recipe, train.classes, embedder.dim, batches.batch_size, train.judged_pairs).to(device(recipe))
    network = embedder if features is None else _later(recipe, embedder, features)
    inputs = AugmentedImages(train, views(recipe, how).train, recipe.seed) if features is None else features

    def prepare(values: Tensor) -> Tensor:
        return scale(values, how) if features is None else values.float()

    generators, mixing = generators_of(goal), mixer_of(recipe, embedder, torch.Generator().manual_seed(recipe.seed))
    if mixing is not None:
        generators["mixup"] = mixing.generator
    workers = recipe.data.workers
    update = optimiser(rates, groups(recipe, embedder, goal))
    strategy = None
    if isinstance(goal, ProxyObjective):
        pool = Pool(inputs, train.labels, prepare, recipe.seed, workers, Ranks.current())
        strategy = ChanceConstraints(network, goal, update, pool, rates.weight_decay)
    return Loop(
        network,
        goal,
        update,
        recipe.schedule.over(steps_of(recipe, len(batches)), len(batches)),
        inputs,
        batches,
        prepare,
        embeddings,
        clipping=rates.clipping,
        precision=recipe.train.precision,
        workers=workers,
        compiled=recipe.train.compile is True,
        generators=generators,
        unfreezing=None if recipe.model.unfreezing.epoch is None else recipe.model.unfreezing,
        geometry=getattr(goal.loss, "normalise", "sphere"),
        chunk=recipe.train.chunk,
        mixer=mixing,
        strategy=strategy,
    )


def _later(recipe: Recipe, embedder: Embedder, features: FeatureViews) -> nn.Module:
    """What learns on features: the head, or the stages after those whose maps they are."""
    upto = None if recipe.features is None else recipe.features.upto
    return embedder.head if upto is None else Rest(embedder, upto, features.shape)


def groups(recipe: Recipe, embedder: Embedder, goal: Goal) -> Iterator[dict[str, Any]]:
    """Parameter groups: backbone (unless it is frozen), head, and the loss's own."""
    table = recipe.optimiser
    decay = table.weight_decay if recipe.ccp is None else 0.0  # CCP adds it to the gradients, before they are clipped
    for group in embedder.parameter_groups(table.lr, table.head_lr, decay, table.stage_decay):
        if not recipe.head_only or group["name"] == "head":
            yield group
    yield from _of_loss(recipe, goal, table.lr)


def _of_loss(recipe: Recipe, goal: Goal, rate: float) -> Iterator[dict[str, Any]]:
    """What the loss learns, at its own rate where the recipe has one, else at what its paper makes of `rate`."""
    own = recipe.optimiser.loss_lr
    for group in goal.parameter_groups(rate):
        yield group if own is None else {**group, "lr": own}


def head_loop(
    recipe: Recipe,
    model: Model,
    points: Float[Tensor, "n width"],
    labels: Integer[Tensor, " n"],
    chances: Float[Tensor, " n"] | None = None,
) -> Loop:
    """Training of the head alone, on features computed once: the same loop, with vectors instead of images.

    `points`: the features, n × width. `labels`: their classes, with their `chances` where they weigh.
    Every process of a run trains the same head.
    """
    table, embedder = recipe.head, embedder_of(model)
    classes = len(labels.unique())  # type: ignore[no-untyped-call]
    batch_size = table.per_class * max(
        1, min(classes, table.batch_size // table.per_class, len(labels) // table.per_class)
    )
    batches = samplers.build(
        "class_balanced",
        labels=labels,
        chances=chances,
        batch_size=batch_size,
        per_class=table.per_class,
        seed=recipe.seed,
    )
    goal = objective(replace(recipe, ccp=None), classes, embedder.dim, batch_size).to(device(recipe))
    parameters = [{"params": list(embedder.head.parameters()), "lr": table.lr}, *_of_loss(recipe, goal, table.lr)]
    return Loop(
        embedder.head,
        goal,
        optimiser(recipe.optimiser, iter(parameters)),
        Schedule("cosine", table.steps),
        FeatureViews(points[:, None], labels),
        batches,
        generators=generators_of(goal),
        ranks=Ranks(),
    )
