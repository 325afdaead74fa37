"""What the test file of a loss says about it, for the tests of all losses.

DEFAULTS: the values its paper prints. PRESETS: those of its presets. TRAINING: what to change in the default recipe for
small images to train with it. FEW_STEPS: what a test of a few dozen steps changes besides. TRAINS_ALONE: False where it
is meant to be added to another loss. TAKES_TRIPLETS: whether a list of triplets will do as targets. SAMPLED: whether it
draws from plain labels. Only DEFAULTS must be there.
"""

from importlib import import_module
from types import ModuleType


def facts(loss: str) -> ModuleType:
    return import_module(f"tests.losses.test_{loss}")


def training(loss: str) -> list[str]:
    """What to change in the default recipe to train with this loss."""
    return [f"loss.name={loss}", *getattr(facts(loss), "TRAINING", [])]
