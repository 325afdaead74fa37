"""From a recipe and the data to the objects of a run: the only place where names become things."""

import inspect
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, get_args

import torch
from jaxtyping import Float, Integer
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from lookalike import catalog, losses, miners, regularisers, samplers
from lookalike.data import Augmentation, AugmentedImages, Dataset
from lookalike.data import preset as image_preset
from lookalike.errors import check, unknown
from lookalike.evaluation import names as metric_names
from lookalike.models import Embedder, Model, Preprocessing, up_to
from lookalike.models.model import checked_device
from lookalike.models.preprocess import scale
from lookalike.processes import Ranks
from lookalike.recipe import strategy
from lookalike.recipe.protocol import check_protocol
from lookalike.recipe.settings import Member, Recipe
from lookalike.samplers import BatchSampler, EmbeddingBank
from lookalike.training import Loop, Objective, Plan, Schedule, optimisers
from lookalike.training.ccp import ProxyObjective
from lookalike.training.memory import CrossBatchMemory
from lookalike.training.pool import Pool

HEADS = ("default", "principal")
Goal = Objective | ProxyObjective


def check_names(recipe: Recipe) -> None:
    """Build what needs no data, so that a wrong name or setting is refused before the first image is read."""
    check_protocol(recipe)
    for metric in (recipe.train.plan.select, *recipe.evaluation.metrics, *recipe.evaluation.train):
        metric_names.expand(metric)
    plain = replace(recipe, model=replace(recipe.model, weights=None))
    strategy.check_strategy(recipe, lambda: embedder_of(model(plain)))
    objective(recipe, classes=4, dim=8, batch_size=8)
    possible = catalog.settings_of(catalog.member("sampler", samplers.MEMBERS, recipe.sampler.name))
    for key in recipe.sampler.settings:
        if key not in possible:
            raise unknown(f"setting of {recipe.sampler.name}", key, possible)
    weight = nn.Parameter(torch.zeros(1))
    optimisers.build(recipe.optimiser.name, [{"params": [weight], "lr": 0.1}], **recipe.optimiser.settings)
    schedule(recipe, steps=1)
    views(recipe, Preprocessing())
    if recipe.model.head not in HEADS:
        raise unknown("start of the head", recipe.model.head, HEADS)
    device(recipe)


def device(recipe: Recipe) -> torch.device:
    """The device asked for; auto: a GPU where there is one."""
    name = recipe.train.device
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    return checked_device(name)


def model(recipe: Recipe) -> Model:
    """The untrained model, with the preprocessing that fits the recipe's images."""
    table = recipe.model
    raw = Model.create(table.architecture, table.weights, recipe.seed)
    network = replace(
        raw, preprocessing=views(recipe, raw.preprocessing).preprocessing, geometry=recipe.evaluation.geometry
    )
    if table.freeze is not None:
        embedder = embedder_of(network)
        embedder.freeze(up_to(table.freeze, embedder.backbone.stages))
    network.embedder.to(device(recipe))
    return network


def embedder_of(made: Model) -> Embedder:
    assert isinstance(made.embedder, Embedder)
    return made.embedder


@dataclass(frozen=True)
class Views:
    """What the network sees of an image: in training, and when it is used."""

    train: Augmentation
    preprocessing: Preprocessing


def views(recipe: Recipe, natural: Preprocessing) -> Views:
    """The protocol's crops in the colours the backbone was trained on (`natural`)."""
    wanted, protocol = recipe.images, image_preset(recipe.images.preset)
    size = wanted.size or protocol.evaluation.size
    base = protocol.evaluation.warp or protocol.evaluation.short_side or protocol.evaluation.size
    side = wanted.short_side or round(base * size / protocol.evaluation.size)
    protocol = protocol.resized(size, side)
    changes: dict[str, Any] = {}
    if wanted.area is not None:
        check(len(wanted.area) == 2, f"images.area is a range of two numbers, not {list(wanted.area)}")
        changes["area"] = wanted.area
    if wanted.flip is not None:
        changes["flip"] = wanted.flip
    used = replace(natural.sized(size, side), warp=protocol.evaluation.warp is not None)
    return Views(replace(protocol.train, **changes), used)


def objective(recipe: Recipe, classes: int, dim: int, batch_size: int) -> Goal:
    """The loss with its miner, memory, proxies and regularisers; random parts from the seed."""
    drawing = {"generator": generator(recipe)}
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(recipe.seed)
        own = drawing if "generator" in _settings("loss", losses.MEMBERS, recipe.loss.name) else {}
        given = strategy.form(recipe) | _given("loss", losses.MEMBERS, recipe.loss)
        chosen = {"classes": classes, "dim": dim, **own, **given}
        loss = losses.build(recipe.loss.name, recipe.loss.preset, **chosen)
        miner = None
        if recipe.miner is not None:
            own = drawing if "generator" in _settings("miner", miners.MEMBERS, recipe.miner.name) else {}
            given = _given("miner", miners.MEMBERS, recipe.miner)
            miner = miners.build(recipe.miner.name, recipe.miner.preset, **own, **given)
        added = [regularisers.build(name, **settings) for name, settings in recipe.regularisers.items()]
    if recipe.ccp is not None:
        return ProxyObjective(loss, recipe.ccp, classes, dim, added)
    wanted = recipe.memory
    check(wanted.batches >= 0, f"memory.batches must not be negative, not {wanted.batches}")
    memory = CrossBatchMemory(wanted.batches * batch_size, dim) if wanted.batches else None
    if memory is not None:
        strategy.check_memory(recipe, loss)
    return Objective(loss, miner, added, memory, wanted.weight, wanted.start)


def _settings(kind: str, members: Any, name: str) -> list[str]:
    return catalog.settings_of(catalog.member(kind, members, name))


def _given(kind: str, members: Any, wanted: Member) -> dict[str, Any]:
    """The settings as TOML has them, with None where "none" is written and nothing is possible (`mining_margin`)."""
    known = inspect.signature(catalog.member(kind, members, wanted.name)).parameters

    def value(key: str, written: Any) -> Any:
        options = get_args(known[key].annotation) if key in known else ()
        optional = type(None) in options and not any("none" in get_args(option) for option in options)
        return None if written == "none" and optional else written

    return {key: value(key, written) for key, written in wanted.settings.items()}


def generator(recipe: Recipe) -> torch.Generator:
    """What miners and losses draw from."""
    return torch.Generator(device(recipe)).manual_seed(recipe.seed)


def generators_of(made: Goal) -> dict[str, torch.Generator]:
    """The generators an objective draws from, to be kept in checkpoints."""
    owners = {"loss": made.loss, "miner": made.miner}
    found = {name: getattr(owner, "generator", None) for name, owner in owners.items()}
    return {name: drawn for name, drawn in found.items() if drawn is not None}


def sampler(recipe: Recipe, train: Dataset, bank: EmbeddingBank | None = None) -> BatchSampler:
    """The batch sampler over the train images."""
    wanted = recipe.sampler
    settings = {"seed": recipe.seed, **_given("sampler", samplers.MEMBERS, wanted)}
    made = samplers.build(
        wanted.name, wanted.preset, labels=train.labels, categories=train.categories, bank=bank, **settings
    )
    made.check_shares(Ranks.current().count)
    return made


def bank(recipe: Recipe, train: Dataset, dim: int) -> EmbeddingBank | None:
    return EmbeddingBank(len(train), dim) if samplers.needs_bank(recipe.sampler.name) else None


def schedule(recipe: Recipe, steps: int) -> Schedule:
    return replace(recipe.schedule, steps=steps)


def steps_of(recipe: Recipe, batches: int) -> int:
    """The length of the run, from its steps or its epochs."""
    wanted = recipe.train
    check(wanted.steps is None or wanted.epochs is None, "give train.steps or train.epochs, not both")
    if wanted.steps is None and wanted.epochs is None:
        check(wanted.minutes is not None, "the recipe does not say how long: give train.steps, epochs or minutes")
        return 1  # until the clock has decided
    return wanted.steps if wanted.steps is not None else (wanted.epochs or 0) * batches


def groups(recipe: Recipe, embedder: Embedder, goal: Goal) -> Iterator[dict[str, Any]]:
    """Parameter groups: backbone, head, and the loss's own."""
    wanted = recipe.optimiser
    decay = wanted.weight_decay if recipe.ccp is None else 0.0  # CCP adds it to the gradients itself
    yield from embedder.parameter_groups(wanted.lr, wanted.head_lr, decay)
    for group in goal.parameter_groups(wanted.lr):
        yield group if wanted.loss_lr is None else {**group, "lr": wanted.loss_lr}


def loop(recipe: Recipe, made: Model, train: Dataset) -> Loop:
    """Everything that learns, ready for its first step."""
    embedder = embedder_of(made)
    kept = bank(recipe, train, embedder.dim)
    batches = sampler(recipe, train, kept)
    goal = objective(recipe, train.classes, embedder.dim, batches.batch_size).to(device(recipe))
    table = recipe.optimiser
    how = made.preprocessing

    def prepare(pixels: Tensor) -> Tensor:
        return scale(pixels, how)

    mixing = strategy.mixing(recipe, embedder)
    drawn = generators_of(goal) | ({} if mixing is None else {"mixup": mixing.generator})
    optimiser = optimisers.build(table.name, groups(recipe, embedder, goal), **table.settings)
    images = AugmentedImages(train, views(recipe, how).train, recipe.seed)
    pool = Pool(images, train.labels, prepare, recipe.seed, recipe.data.workers, Ranks.current())
    return Loop(
        embedder, goal, optimiser, schedule(recipe, steps_of(recipe, len(batches))), images, batches, prepare, kept,
        clipping=table.clipping, precision=recipe.train.precision,
        unfreezing=None if recipe.model.unfreezing.epoch is None else recipe.model.unfreezing,
        workers=recipe.data.workers, generators=drawn,
        geometry=getattr(goal.loss, "normalise", "sphere"), chunk=recipe.train.chunk, mixer=mixing,
        strategy=strategy.chance_constraints(recipe, embedder, goal, optimiser, pool),
    )  # fmt: skip


def plan(recipe: Recipe, steps: int, seconds: float | None = None, batches: int = 1) -> Plan:
    """How long and how often, in steps; an epoch has so many `batches`."""
    table = recipe.train
    every = table.plan.validate_every if table.validate_epochs is None else table.validate_epochs * batches
    return replace(table.plan, steps=steps, validate_every=every, seconds=seconds, seed=recipe.seed)


def head_loop(recipe: Recipe, made: Model, points: Float[Tensor, "n width"], labels: Integer[Tensor, " n"]) -> Loop:
    """Training of the head alone, on features computed once: the same loop, with vectors in the place of images."""
    wanted, embedder = recipe.head, embedder_of(made)
    classes = len(labels.unique())  # type: ignore[no-untyped-call]
    batch_size = wanted.per_class * min(classes, max(1, wanted.batch_size // wanted.per_class))
    batches = samplers.build(
        "class_balanced", labels=labels, batch_size=batch_size, per_class=wanted.per_class, seed=recipe.seed
    )
    goal = objective(replace(recipe, ccp=None), classes, embedder.dim, batch_size).to(device(recipe))
    parameters = [{"params": list(embedder.head.parameters()), "lr": wanted.lr}, *goal.parameter_groups(wanted.lr)]
    return Loop(
        embedder.head, goal, optimisers.build(recipe.optimiser.name, parameters, **recipe.optimiser.settings),
        Schedule("cosine", wanted.steps), TensorDataset(points, labels), batches, generators=generators_of(goal),
    )  # fmt: skip
