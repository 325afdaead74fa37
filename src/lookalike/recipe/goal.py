"""[loss], [miner], [regularisers], [memory] and [ccp]: what a batch is trained on."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import torch
from torch import nn

from lookalike import catalog, losses, miners, regularisers
from lookalike.errors import UserError, check
from lookalike.label_sets import LabelSets
from lookalike.recipe.network import device
from lookalike.recipe.settings import Member, Recipe
from lookalike.training import Objective
from lookalike.training.ccp import FORMS, ProxyObjective
from lookalike.training.memory import CrossBatchMemory
from lookalike.values import member_settings

Goal = Objective | ProxyObjective
Members = Mapping[str, Callable[..., Any]]
OWN = ("name", "preset")  # keys of a table beside the settings of the member it names


def objective(recipe: Recipe, classes: int, dim: int, batch_size: int, sets: LabelSets | None = None) -> Goal:
    """The loss with its miner, memory, proxies and regularisers; random parts from the seed.

    `classes`: how many train. `dim`: of an embedding. `batch_size`: the unit of the memory. `sets`: what class numbers
    stand for, where images have several labels or none.
    """
    generator = torch.Generator(device(recipe)).manual_seed(recipe.seed)  # loss and miner draw from the same
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(recipe.seed)
        facts = {"classes": classes, "dim": dim} | _drawn_from(generator, losses.MEMBERS, recipe.loss)
        settings = facts | _form(recipe) | settings_of("loss", losses.MEMBERS, recipe.loss)
        loss = losses.build(recipe.loss.name, recipe.loss.preset, **settings)
        miner = None
        if recipe.miner is not None:
            settings = settings_of("miner", miners.MEMBERS, recipe.miner)
            settings |= _drawn_from(generator, miners.MEMBERS, recipe.miner)
            miner = miners.build(recipe.miner.name, recipe.miner.preset, **settings)
        added = [_regulariser(name, settings) for name, settings in recipe.regularisers.items()]
    if recipe.ccp is not None:
        return ProxyObjective(loss, recipe.ccp, classes, dim, added)
    table = recipe.memory
    check(table.batches >= 0, f"memory.batches must be at least 0, not {table.batches}")
    memory = CrossBatchMemory(table.batches * batch_size, dim) if table.batches else None
    if memory is not None:
        _check_memory(recipe, loss)
    return Objective(loss, miner, added, memory, memory_weight=table.weight, memory_start=table.start, sets=sets)


def settings_of(table: str, members: Members, member: Member) -> dict[str, Any]:
    """The settings of a named member, checked against what it takes."""
    builder = catalog.member(table, members, member.name)
    return member_settings(table, member.name, builder, member.settings, OWN)


@cache
def mines(loss: str, miner: str) -> bool:
    """Whether a loss takes what a miner chooses, tried on four vectors; what is not known is refused elsewhere.

    >>> mines("triplet", "semihard"), mines("arcface", "semihard"), mines("histogram", "multi_similarity")
    (True, False, True)
    """
    if loss not in losses.MEMBERS or miner not in miners.MEMBERS:
        return True
    vectors, labels = torch.eye(4), torch.tensor([0, 0, 1, 1])
    with torch.random.fork_rng(devices=[]):
        try:
            losses.build(loss, classes=2, dim=4)(vectors, miners.build(miner)(vectors, labels))
        except UserError:
            return False
    return True


def _drawn_from(generator: torch.Generator, members: Members, member: Member) -> dict[str, Any]:
    draws = member.name in members and "generator" in catalog.settings_of(members[member.name])
    return {"generator": generator} if draws else {}


def _regulariser(name: str, settings: Mapping[str, Any]) -> nn.Module:
    builder = catalog.member("regulariser", regularisers.MEMBERS, name)
    return regularisers.build(name, **member_settings(f"regularisers.{name}", name, builder, settings))


def _form(recipe: Recipe) -> dict[str, Any]:
    """The settings of the loss that CCP wants; the recipe's own come before them."""
    return {} if recipe.ccp is None else dict(FORMS.get(recipe.loss.name, {}))


def _check_memory(recipe: Recipe, loss: nn.Module) -> None:
    """A memory is more candidates: the loss must take them."""
    takes = "candidates" in catalog.settings_of(type(loss).forward)
    check(takes, f"the loss '{recipe.loss.name}' compares with class weights, not with a memory: choose a pair loss")


def generators_of(goal: Goal) -> dict[str, torch.Generator]:
    """The generators an objective draws from, to be kept in checkpoints."""
    owners = {"loss": goal.loss, "miner": goal.miner}
    generators = {name: getattr(owner, "generator", None) for name, owner in owners.items()}
    return {name: generator for name, generator in generators.items() if generator is not None}
