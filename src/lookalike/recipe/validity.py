"""What cannot work is refused before the first image is read, not after hours of training.

Everything but the network is tried here; `build.model` refuses what concerns the network itself (weights, stages,
mixup, chunks).
"""

from dataclasses import replace
from typing import Any

import torch
from torch import nn

from lookalike import catalog, samplers
from lookalike.errors import UserError, check, unknown
from lookalike.evaluation import names as metric_names
from lookalike.label_sets import LabelSets
from lookalike.models import Architecture, Preprocessing, backbones
from lookalike.models.backbones.known import KNOWN, resolved
from lookalike.models.pooling import POOLINGS
from lookalike.models.preprocess import LARGEST
from lookalike.recipe import build
from lookalike.recipe.goal import settings_of
from lookalike.recipe.learning import limits, optimiser
from lookalike.recipe.protocol import check_protocol
from lookalike.recipe.settings import Network, Networks, Recipe
from lookalike.recipe.toml import keys
from lookalike.training.ccp import FORMS
from lookalike.training.chunked import InChunks
from lookalike.training.mixup import check_whole_batch
from lookalike.values import member_settings

WEIGHS = "class_balanced"  # the sampler that draws images by the chances of their labels
HEADS = ("default", "principal", "saved")
CLASSES, EACH, DIM = 4, 3, 8  # of the random vectors that an objective is tried on


def check_recipe(recipe: Recipe) -> None:
    """Names and settings, the length of the run, what excludes each other, and the objective on random vectors."""
    check_protocol(recipe)
    for metric in (recipe.train.plan.select, *recipe.evaluation.metrics, *recipe.evaluation.train):
        metric_names.expand(metric)
    _check_network(recipe.model)
    _check_networks(recipe.networks)
    _check_ccp(recipe)
    _check_mixup_and_chunks(recipe)
    _check_features(recipe)
    _check_suspects(recipe)
    settings = {**recipe.sampler.settings, **limits(recipe.sampler.settings)}
    settings_of("sampler", samplers.MEMBERS, replace(recipe.sampler, settings=settings))
    share = recipe.optimiser.stage_decay
    check(share is None or 0 < share <= 1, f"optimiser.stage_decay must lie between 0 and 1, not {share}")
    optimiser(recipe.optimiser, iter([{"params": [nn.Parameter(torch.zeros(1))], "lr": 0.1}]))
    build.views(recipe, Preprocessing())
    build.steps_of(recipe, batches=1)
    _rehearse(recipe)


def check_sets(recipe: Recipe, name: str) -> None:
    """Refuse what needs one class per image, where images have several labels or none."""
    several = f"images of {name} have several labels or none"
    check(recipe.ccp is None, f"CCP draws proxies from classes, and {several}: leave out ccp")
    check(recipe.head.steps == 0, f"head.steps trains on classes, and {several}: set head.steps=0")
    try:
        _rehearse(recipe, LabelSets.of([{kind, kind + 1} for kind in range(CLASSES)]))
    except UserError as refusal:
        raise UserError(f"{several}, and the recipe cannot work on them: {refusal}") from None


def takes_sets(recipe: Recipe) -> bool:
    """Whether the recipe could learn from images with several labels, or with none."""
    try:
        check_sets(recipe, "")
    except UserError:
        return False
    return True


def _rehearse(recipe: Recipe, sets: LabelSets | None = None) -> None:
    labels = torch.arange(CLASSES).repeat_interleave(EACH)
    vectors = torch.randn(len(labels), DIM, generator=torch.Generator().manual_seed(recipe.seed))
    device = build.device(recipe)
    goal = build.objective(recipe, CLASSES, DIM, len(labels), sets).to(device)
    goal(vectors.to(device), labels.to(device), recipe.memory.start)


def _check_network(table: Network) -> None:
    """Names and settings; nothing is built."""
    how = table.architecture
    kind, colon, _ = resolved(how.backbone).partition(":")
    members: dict[str, Any] = backbones.ADAPTERS if colon else backbones.MEMBERS
    if not colon and kind not in members:
        raise unknown("backbone", kind, [*members, *KNOWN])
    builder = catalog.member("source of backbones" if colon else "backbone", members, kind)
    member_settings("model", kind, builder, how.settings, keys(Network).keys() - {"settings"})
    check(table.lora is None or table.lora > 0, f"model.lora is a rank of 1 or more, not {table.lora}")
    for name, value, possible in (("pooling", how.pooling, POOLINGS), ("start of the head", table.head, HEADS)):
        if value not in possible:
            raise unknown(name, value, possible)


def _check_networks(table: Networks | None) -> None:
    for name in () if table is None else table.backbones:
        _check_network(Network(Architecture(name)))
    for name in () if table is None else table.poolings:
        _check_network(Network(Architecture("conv4", pooling=name)))
    for size in () if table is None else table.sizes:
        check(0 < size <= LARGEST, f"networks.sizes are 1 to {LARGEST} pixels, not {size}")


def _check_ccp(recipe: Recipe) -> None:
    if recipe.ccp is None:
        return
    loss, protocol = recipe.loss.name, recipe.protocol
    check(loss in FORMS, f"CCP compares images with proxies and wraps {', '.join(FORMS)}, not '{loss}': set loss.name")
    check(recipe.miner is None, "CCP uses all pairs of images and proxies: set miner.name=none")
    check(recipe.memory.batches == 0, "CCP uses proxies instead of a memory: leave out ccp or memory")
    check(recipe.mixup is None, "CCP is not defined for mixed images: leave out ccp or mixup")
    judged = recipe.data.validation > 0 or protocol.name == "cross_validation" or protocol.select == "test_max"
    check(judged, "CCP takes new proxies when validation stops improving: hold classes back with data.validation=0.1")


def _check_features(recipe: Recipe) -> None:
    """Under [features] the head learns, and nothing else."""
    how = recipe.model.architecture
    check(
        how.hidden is None or recipe.model.head != "principal",
        "a head with a hidden layer cannot start as principal components: leave out model.hidden or model.head",
    )
    if recipe.features is None:
        return
    check(recipe.features.views >= 0, f"features.views must be at least 0, not {recipe.features.views}")
    check(how.dim is not None, "[features] trains a head, and this network has none: set model.dim")
    thaws = recipe.model.unfreezing.epoch is not None
    check(not thaws, "[features] keeps the backbone frozen: leave out model.unfreeze_epoch, or [features]")


def _check_suspects(recipe: Recipe) -> None:
    how, name = recipe.train.suspects, recipe.sampler.name
    if how in (None, "keep"):
        return
    trained = recipe.model.weights is not None
    check(trained, f"train.suspects={how} doubts labels by the features of a trained network: set model.weights")
    draws = how == "drop" or name == WEIGHS
    check(draws, f"train.suspects=weigh needs sampler.name={WEIGHS}: {name} draws all images alike")


def _check_mixup_and_chunks(recipe: Recipe) -> None:
    if recipe.mixup is not None:
        check(
            recipe.memory.batches == 0,
            "a mixed image has two classes, a memory keeps one per image: leave out mixup or memory",
        )
        check_whole_batch(recipe.train.chunk)
    if recipe.train.chunk is not None:
        InChunks(recipe.train.chunk)
