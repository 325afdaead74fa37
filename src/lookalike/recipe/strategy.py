"""[ccp], [mixup] and train.chunk: what goes together, and the objects they become."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from lookalike import catalog
from lookalike.errors import check
from lookalike.recipe.settings import Recipe
from lookalike.training.ccp import FORMS, ChanceConstraints, ProxyObjective
from lookalike.training.chunked import InChunks, check_chunks
from lookalike.training.mixup import Mixer, mixer
from lookalike.training.pool import Pool


def check_strategy(recipe: Recipe, network: Callable[[], nn.Module]) -> None:
    """Refuse what cannot be trained together; `network` builds one like the recipe's, only where it must be seen."""
    if recipe.ccp is not None:
        _check_ccp(recipe)
    if recipe.mixup is not None:
        check(
            recipe.memory.batches == 0, "a mixed image has two classes, a memory keeps one: leave out mixup or memory"
        )
        check(recipe.train.chunk is None, "mixup mixes the whole batch: leave out mixup or train.chunk")
        mixer(recipe.mixup, network(), torch.Generator())
    if recipe.train.chunk is not None:
        InChunks(recipe.train.chunk)
        check_chunks(network().train())


def _check_ccp(recipe: Recipe) -> None:
    loss, protocol = recipe.loss.name, recipe.protocol
    check(loss in FORMS, f"CCP compares images with proxies and wraps {', '.join(FORMS)}, not '{loss}': set loss.name")
    check(recipe.miner is None, "CCP takes all pairs of images and proxies: set miner.name=none")
    check(recipe.memory.batches == 0, "proxies take the place of a memory: leave out ccp or memory")
    check(recipe.mixup is None, "CCP says nothing of mixed images: leave out ccp or mixup")
    judged = recipe.data.validation > 0 or protocol.name == "cross_validation" or protocol.select == "test_max"
    check(judged, "CCP goes on when validation stands still: hold classes back with data.validation=0.1")


def form(recipe: Recipe) -> dict[str, Any]:
    """The settings of the loss that its strategy asks for; the recipe's own come before them."""
    return {} if recipe.ccp is None else dict(FORMS.get(recipe.loss.name, {}))


def check_memory(recipe: Recipe, loss: nn.Module) -> None:
    """A memory is more candidates: the loss must take them."""
    takes = "candidates" in catalog.settings_of(type(loss).forward)
    check(takes, f"the loss '{recipe.loss.name}' compares with class weights, not with a memory: choose a pair loss")


def mixing(recipe: Recipe, network: nn.Module) -> Mixer | None:
    if recipe.mixup is None:
        return None
    return mixer(recipe.mixup, network, torch.Generator().manual_seed(recipe.seed))


def chance_constraints(
    recipe: Recipe, network: nn.Module, goal: nn.Module, optimiser: torch.optim.Optimizer, pool: Pool
) -> ChanceConstraints | None:
    """CCP with the recipe's weight decay, which it adds before gradients are clipped."""
    if not isinstance(goal, ProxyObjective):
        return None
    return ChanceConstraints(network, goal, optimiser, pool, recipe.optimiser.weight_decay)
