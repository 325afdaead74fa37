"""One training, from an untrained model to validated weights. `fit`, several seeds or folds, and sweeps all use it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

from torch import Tensor, nn

from lookalike.data import Dataset
from lookalike.features import FeatureViews, backend_of, extract
from lookalike.files import write_text
from lookalike.fit import plan as planning
from lookalike.fit.plan import SMALL, RunClock
from lookalike.fit.prepare import (
    Validation,
    backbone_features,
    embedding_of,
    fill_bank,
    needs_features,
    prepare_head,
    train_features,
)
from lookalike.fit.result_content import header
from lookalike.models import Model
from lookalike.models.low_rank import merged_state
from lookalike.progress import Progress
from lookalike.protocols.class_disjoint import Parts
from lookalike.recipe import Recipe, build, to_toml
from lookalike.recipe.protocol import measure
from lookalike.runs import OpenRun, checkpoint
from lookalike.runs.log import Watcher
from lookalike.training import Loop, train, unreachable_margin
from lookalike.training.blend import blend
from lookalike.training.ccp import ChanceConstraints
from lookalike.training.peak_memory import forget_peak
from lookalike.training.train import Ending, Stop, Validate

Weights = Mapping[str, Tensor]


class TrainedModel(NamedTuple):
    """A model with the weights that validation liked best, and how it came to them.

    Where candidates were judged, `delivered` is the one to hand over, which need not be the trained one; `choice` says
    why (see `verdict`).
    """

    model: Model
    untrained: Weights
    recipe: Recipe  # with the number of steps, which the clock may have decided
    ending: Ending
    delivered: Model | None = None
    choice: "Choice | None" = None
    uses_training: bool = True  # else an untrained candidate won, whose features are known
    share: float = 1.0  # of the trained weights, the rest being those before training
    refit: Callable[[Model, Dataset], Model] = lambda model, _: (
        model
    )  # what is delivered, of a network and other images


class Choice(NamedTuple):
    """The table of candidates, and what can be said of the choice among them."""

    delivered: str
    rows: list[dict[str, Any]]
    sentences: list[str]
    warnings: list[str]
    needed: int | None = None  # minutes, where there was no time to train


def weights(model: Model) -> Weights:
    """A copy of the weights as they are now."""
    return {name: value.detach().cpu().clone() for name, value in model.embedder.state_dict().items()}


@contextmanager
def weights_of(network: nn.Module, state: Weights) -> Iterator[None]:
    """The network with other weights, until the block ends."""
    own = {name: value.detach().clone() for name, value in network.state_dict().items()}
    network.load_state_dict(state)
    try:
        yield
    finally:
        network.load_state_dict(own)


def train_model(recipe: Recipe, model: Model, parts: Parts, run: OpenRun, clock: RunClock, stop: Stop) -> TrainedModel:
    """Train an untrained model as its recipe says, from wherever the checkpoint stands, until it is validated."""
    untrained = weights(model)
    sets = parts.train.sets
    model = replace(model, classes=parts.train.label_names if sets is None else tuple(map(str, sets.names)))
    started = checkpoint.exists(run.folder.checkpoint)
    features = _features(recipe, model, parts, run)
    with _adapted(recipe, model):
        loop = build.loop(recipe, model, parts.train, features)
        warning = unreachable_margin(loop.objective.loss)  # type: ignore[arg-type]
        if warning is not None:
            run.note(warning.advice)
        step = checkpoint.step(run.folder.checkpoint) if started else 0
        planned = planning.decided(run, recipe, loop, step)
        if not started:
            _prepare(recipe, model, loop, parts, run)
        if planned is None:
            planned = planning.plan(recipe, loop, model, parts, clock)
            planning.decide(run, planned.recipe, planned.plan)
            write_text(run.folder.recipe, to_toml(planned.recipe, header()))
        recipe, plan, later = planned
        plan = replace(plan, save_every=clock.save_every)
        loop = replace(loop, schedule=replace(loop.schedule, steps=max(1, plan.steps)))
        run.stage(f"training, from step {step}" if started else "training")
        validate = _validation(recipe, model, parts)
        if isinstance(loop.strategy, ChanceConstraints) and isinstance(validate, Validation):
            loop.strategy.unseen = validate.embedded
        forget_peak(build.device(recipe))
        pace, tell = planning.pace(run, later), _watcher(recipe, run)
        ending = train(loop, plan, validate=validate, folder=run.folder.checkpoint, tell=tell, stop=stop, pace=pace)
    if plan.flexible:
        recipe = replace(recipe, train=replace(recipe.train, steps=loop.schedule.steps))
        write_text(run.folder.recipe, to_toml(recipe, header()))
    ending, share = _blend(recipe, model, validate, ending, run)
    return TrainedModel(model, untrained, recipe, ending, share=share)


@contextmanager
def _adapted(recipe: Recipe, model: Model) -> Iterator[None]:
    """Within the block, matrices of low rank learn in the place of linear layers, where the recipe says so."""
    rank, embedder = recipe.model.lora, build.embedder_of(model)
    if rank is None:
        yield
        return
    embedder.adapt(rank, recipe.seed)
    try:
        yield
    finally:
        embedder.merge()


def leave_untrained(
    recipe: Recipe, model: Model, parts: Parts, run: OpenRun, clock: RunClock, stop: Stop
) -> TrainedModel:
    """The network as it is, for the rows of a paper's table that show what training started from."""
    del parts, clock, stop
    run.note("nothing is trained: the network is measured as it is")
    return TrainedModel(model, weights(model), recipe, Ending("nothing was to be trained", 0, 0, {}, 0.0))


def _features(recipe: Recipe, model: Model, parts: Parts, run: OpenRun) -> FeatureViews | None:
    """Under [features], those of all images of the run, test images too, so that they no longer count for the clock."""
    if recipe.features is None:
        return None
    if not recipe.head_only:
        return train_features(recipe, model, parts.train, run.stage("maps of the frozen stages"))
    note = backend_of(model.headless(), recipe.features.backend).note
    if note:
        run.note(note)
    progress = run.stage("features of the frozen backbone")
    for part in (parts.validation, parts.test, *(part for _, part in parts.others)):
        if part is not None:
            backbone_features(recipe, model, part, progress)
    return train_features(recipe, model, parts.train, progress)


def _prepare(recipe: Recipe, model: Model, loop: Loop, parts: Parts, run: OpenRun) -> None:
    """What precedes the first step: the start of the head, the bank, a copy of the weights."""
    if needs_features(recipe):
        # the candidates that need no training have read the features already
        read = cached_features if recipe.train.deliver == "best" and not recipe.head_only else None
        prepare_head(recipe, model, parts.train, run.stage("features for the head"), read)
    if loop.bank is not None:
        fill_bank(recipe, loop, model, parts.train, run.stage("filling the embedding bank"))
    if recipe.train.blend and loop.ranks.first:
        checkpoint.save_tensors(run.folder.start, merged_state(model.embedder))


def cached_features(model: Model, dataset: Dataset, progress: Progress | None = None) -> Tensor:
    """The pooled features of a network that does not change, from the cache as far as they are there."""
    small = model.architecture is None or model.architecture.backbone in SMALL
    return extract(model.headless(), dataset, backend="torch" if small else "auto", progress=progress)


def _validation(recipe: Recipe, model: Model, parts: Parts) -> Callable[[], Mapping[str, float]] | None:
    """The figures on the validation classes, if there are any, or on test where it selects the weights."""
    if recipe.protocol.select != "test_max":
        return None if parts.validation is None else Validation(recipe, model, parts.validation)
    reported = recipe.evaluation.metrics
    metrics = {"recall@1", "map@r", recipe.train.plan.select, *reported} if reported else ()
    evaluated, test = measure(recipe), parts.test
    vectors = embedding_of(recipe, model, test)
    return lambda: evaluated("", "model", vectors(), test, model.geometry, sorted(metrics)).result


def _watcher(recipe: Recipe, run: OpenRun) -> Watcher:
    """The watcher of the training; validations on test images are named as such."""
    if recipe.protocol.select != "test_max":
        return run.tell
    return lambda event: run.tell({**event, "on": "test"} if event["event"] == "validation" else event)


def _blend(
    recipe: Recipe, model: Model, validate: Validate | None, ending: Ending, run: OpenRun
) -> tuple[Ending, float]:
    """Average the weights with those at the start, by the share that validation likes best, which is returned too."""
    shares = recipe.train.blend
    if not shares or validate is None:
        return ending, 1.0
    run.stage("blending with the weights before training")
    start = checkpoint.load_tensors(run.folder.start)
    share, values = blend(model.embedder, start, shares, validate, recipe.train.plan.select)
    run.note(f"{share:.0%} trained, {1 - share:.0%} as before training: validation map@r {values['map@r']:.3f}")
    return replace(ending, best=values), share
