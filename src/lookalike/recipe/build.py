"""From a recipe and the data to the objects of a run: the only place where names become things."""

from lookalike.recipe.goal import Goal, objective
from lookalike.recipe.learning import bank, head_loop, loop, plan, sampler, steps_of
from lookalike.recipe.network import Views, device, embedder_of, model, views

__all__ = [
    "Goal",
    "Views",
    "bank",
    "device",
    "embedder_of",
    "head_loop",
    "loop",
    "model",
    "objective",
    "plan",
    "sampler",
    "steps_of",
    "views",
]
