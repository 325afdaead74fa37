"""Wortsman et al.: Robust fine-tuning of zero-shot models, CVPR 2022: the average of the weights before and after.

θ = (1 − α) θ_before + α θ_after. Fine-tuning on some classes forgets part of what the pretrained weights knew of all
others; a network in between knows both. Validation classes choose α.
"""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from lookalike.errors import check

State = Mapping[str, Tensor]


def between(before: State, after: State, share: float) -> dict[str, Tensor]:
    """The weights at this share of the way from `before` to `after`.

    >>> between({"w": torch.zeros(2)}, {"w": torch.ones(2)}, 0.25)
    {'w': tensor([0.2500, 0.2500])}
    """
    return {
        name: torch.lerp(before[name].to(value.device), value, share) if value.is_floating_point() else value
        for name, value in after.items()
    }


def blend(
    network: nn.Module, before: State, shares: Sequence[float], validate: Callable[[], Mapping[str, float]], select: str
) -> tuple[float, Mapping[str, float]]:
    """Leave the best blend in the network; return its share of the trained weights, and its validation figures."""
    check(all(0 < share < 1 for share in shares), f"shares to blend must lie between 0 and 1, not {list(shares)}")
    after = {name: value.detach().clone() for name, value in network.state_dict().items()}
    validations = {1.0: dict(validate())}
    for share in shares:
        network.load_state_dict(between(before, after, share))
        validations[share] = dict(validate())
    best = max(validations, key=lambda share: validations[share][select])
    network.load_state_dict(after if best == 1 else between(before, after, best))
    return best, validations[best]
