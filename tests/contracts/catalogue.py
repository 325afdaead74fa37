"""The whole catalogue, read from its list: a new loss is held to every contract the moment it is listed."""

import inspect

import torch

from lookalike import losses, miners
from lookalike.targets import Triplets
from tests.losses.facts import facts

NAMES = losses.names()
CLASSES, DIM = 4, 6


def needs_classes(name):
    """Whether the loss has a weight per class, and so takes labels 0 … classes − 1 and no candidates."""
    return inspect.signature(losses.MEMBERS[name]).parameters.get("classes", inspect.Parameter).default is (
        inspect.Parameter.empty
    )


PAIR_NAMES = [name for name in NAMES if not needs_classes(name)]
CLASS_NAMES = [name for name in NAMES if needs_classes(name)]
TAKES_TRIPLETS = [name for name in NAMES if getattr(facts(name), "TAKES_TRIPLETS", False)]
# these draw from plain labels, so that the order of the batch and the draw change their value
SAMPLED = [name for name in NAMES if getattr(facts(name), "SAMPLED", False)]


def build(name, classes=CLASSES, **settings):
    torch.manual_seed(0)
    facts = {"classes": classes, "dim": DIM} if needs_classes(name) else {}
    loss = losses.build(name, **facts, **settings)
    if name in SAMPLED:
        loss.generator = torch.Generator().manual_seed(0)
    if hasattr(loss, "epoch_started"):
        loss.epoch_started(1, torch.Generator().manual_seed(0))
    return loss


def rows(count, seed=0, dtype=torch.float32):
    return torch.randn(count, DIM, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def mined(embeddings, labels, seed=0) -> Triplets:
    return miners.Random(generator=torch.Generator().manual_seed(seed))(embeddings, labels)
