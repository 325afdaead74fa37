"""A recipe tried out on a few random vectors and an untrained network: what cannot work is refused before the first
image is read, not after hours of training.
"""

import torch

from lookalike.recipe import build
from lookalike.recipe.settings import Recipe

CLASSES, EACH, DIM = 4, 3, 8


def rehearse(recipe: Recipe) -> None:
    """The length of the run, the objective with its memory, and the network with its weights."""
    build.steps_of(recipe, batches=1)
    labels = torch.arange(CLASSES).repeat_interleave(EACH)
    vectors = torch.randn(len(labels), DIM, generator=torch.Generator().manual_seed(recipe.seed))
    device = build.device(recipe)
    goal = build.objective(recipe, CLASSES, DIM, len(labels)).to(device)
    goal(vectors.to(device), labels.to(device), recipe.memory.start)
    build.model(recipe)
