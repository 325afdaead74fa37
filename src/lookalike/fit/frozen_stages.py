"""Training in little time: the first stages stay as they are; the later ones learn on their maps, computed once."""

from dataclasses import replace

from torch import nn

from lookalike.features.maps import map_bytes
from lookalike.fit.plan import STEP, RunClock, seconds_after
from lookalike.fit.sample import ONNX, evenly
from lookalike.fit.timing import embedding_rate
from lookalike.models import Model, up_to
from lookalike.models.backbones.stages import Backbone, stage_of
from lookalike.models.backends import possible as has_onnx
from lookalike.processes import Ranks
from lookalike.protocols.class_disjoint import Parts
from lookalike.recipe import Recipe, build
from lookalike.recipe.settings import FrozenFeatures
from lookalike.runs import OpenRun

DECISION = "maps"  # on which the later stages learn: views, and images; without images the whole network learns
ENOUGH = 300  # steps of the whole network, from which on all of it learns
MOST = 4  # random crops of an image, beside its centre
SHARE = 1 / 3  # of the time for training, for the maps
LINEAR = 0.3  # of the parameters are in linear layers: no convolutional network has as many
RANK, FASTER, HEAD = 8, 15, 5  # of the matrices; their rate and that of the head, as multiples of the recipe's
LATER = 0.5  # of the parameters are in the stages that learn, at least
BYTES = 2**32  # of all maps, at most
FEW = 5  # batches of images, below which there is nothing to learn on


def with_frozen_stages(
    recipe: Recipe, model: Model, parts: Parts, run: OpenRun, clock: RunClock
) -> tuple[Recipe, Parts]:
    """The recipe as it can be trained in the time that is left: as a whole, or on maps of its first stages.

    The parts are those given, with fewer train images where there is no time for maps of all.
    """
    embedder = build.embedder_of(model)
    stage = _last_frozen(embedder.backbone)
    if recipe.features is not None or recipe.train.minutes is None or recipe.model.weights is None or stage is None:
        return recipe, parts
    made = run.decisions.get(DECISION)
    if made is None:
        count = Ranks.current().from_first(lambda: _maps(recipe, model, stage, parts, clock))
        images = min(count, len(parts.train))
        made = {"views": min(MOST + 1, count // max(1, images)), "images": images}
        run.decisions.make(DECISION, made)
    if not made["images"]:
        return recipe, parts
    train = evenly(parts.train, made["images"], recipe.seed)
    which = "every train image" if len(train) == len(parts.train) else f"{len(train):,} of the train images"
    views = f"{made['views']} view{'s' * (made['views'] > 1)}"
    run.note(f"the stages after {stage} learn, on maps of {views} of {which}, to save time")
    embedder.freeze(up_to(stage, embedder.backbone.stages))
    learning = replace(recipe, features=FrozenFeatures(views=made["views"] - 1, upto=stage))
    return learning, parts._replace(train=train.dense())


def with_low_rank(recipe: Recipe, model: Model, run: OpenRun) -> Recipe:
    """The recipe of a network that was chosen: one of linear layers learns by matrices of low rank beside them."""
    linear = sum(layer.weight.numel() for layer in model.embedder.modules() if isinstance(layer, nn.Linear))
    whole = sum(parameter.numel() for parameter in model.embedder.parameters())
    given = recipe.networks is None or recipe.model.lora is not None or recipe.model.weights is None
    if given or linear < LINEAR * whole:
        return recipe
    run.note(f"matrices of rank {RANK} learn beside the linear layers, which stay as they are")
    rates = replace(
        recipe.optimiser,
        lr=FASTER * recipe.optimiser.lr,
        head_lr=recipe.optimiser.head_lr or HEAD * recipe.optimiser.lr,
    )
    return replace(recipe, model=replace(recipe.model, lora=RANK), optimiser=rates)


def _last_frozen(backbone: Backbone) -> str | None:
    """The last stage after which enough parameters follow; None: the network cannot be entered after a stage."""
    if getattr(backbone, "steps", None) is None:
        return None
    counts = dict.fromkeys(backbone.stages, 0)
    for name, parameter in backbone.named_parameters():
        counts[stage_of(name, backbone.stages)] += parameter.numel()
    names, whole = list(counts), sum(counts.values())
    later = [sum(counts[name] for name in names[place + 1 :]) for place in range(len(names))]
    return next((name for name, count in reversed([*zip(names, later, strict=True)]) if count >= LATER * whole), None)


def _maps(recipe: Recipe, model: Model, stage: str, parts: Parts, clock: RunClock) -> int:
    """For how many maps there is time and room; 0: there is enough time for the whole network, or too little."""
    rate = embedding_rate(model, parts.train)
    left = clock.left(recipe.train.minutes or 0.0) - seconds_after(recipe, parts, rate)
    batch: int = recipe.sampler.settings["batch_size"]
    if left * rate / (STEP * batch) >= ENOUGH:
        return 0
    count = min(int(SHARE * left * rate * (ONNX if has_onnx() else 1.0)), BYTES // map_bytes(model, stage))
    return count if count >= min(FEW * batch, len(parts.train)) else 0
