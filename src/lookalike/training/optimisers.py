"""The optimisers of the protocols, by name."""

import math
from collections.abc import Iterable
from typing import Any

import torch

from lookalike import catalog
from lookalike.errors import UserError, check

MEMBERS: dict[str, type[torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "rmsprop": torch.optim.RMSprop,
    "sgd": torch.optim.SGD,
}


def names() -> list[str]:
    """The names of all optimisers."""
    return sorted(MEMBERS)


def build(name: str, groups: Iterable[dict[str, Any]], **settings: Any) -> torch.optim.Optimizer:
    """The optimiser called `name` over parameter `groups` that carry their own rates; empty groups are left out.

    >>> weight = torch.nn.Parameter(torch.zeros(1))
    >>> build("sgd", [{"params": [weight], "lr": 0.1}], momentum=0.9).param_groups[0]["lr"]
    0.1
    """
    listed = [group for group in groups if len(group["params"])]
    check(bool(listed), "there is nothing to train: every part of the network is frozen or has no parameters")
    for group in listed:
        rate = group["lr"]
        check(0 <= rate < math.inf, f"the learning rate (optimiser.lr) must be a number of at least 0, not {rate}")
    # one pass over each tensor instead of a dozen; plain RMSprop has no such kernel
    settings = settings | ({} if name == "rmsprop" else {"fused": True})
    try:
        return catalog.build("optimiser", MEMBERS, name, {"params": listed, "lr": listed[0]["lr"]} | settings)
    except UserError:
        raise
    except ValueError as error:  # torch looks at the other numbers itself: a negative momentum
        raise UserError(f"the optimiser {name} cannot run: {str(error)[:1].lower()}{str(error)[1:]}") from None


def restore(optimiser: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Load a `state` into `optimiser`; moments get the memory layout of their parameters, as fused kernels expect."""
    optimiser.load_state_dict(state)
    for parameter, moments in optimiser.state.items():
        for name, value in moments.items():
            if isinstance(value, torch.Tensor) and value.shape == parameter.shape:
                moments[name] = torch.empty_like(parameter, dtype=value.dtype).copy_(value)
