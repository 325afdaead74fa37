"""Wortsman et al.: Robust fine-tuning of zero-shot models, CVPR 2022: the average of the weights before and after.

θ = (1 − α) θ_before + α θ_after. Fine-tuning on some classes forgets some of what the pretrained weights knew of all
others; in between lies a network that knows both. α is what validation classes like best.
"""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn

from lookalike.errors import check

State = Mapping[str, Tensor]


def between(before: State, after: State, share: float) -> dict[str, Tensor]:
    """The weights at this share of the way.

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
    """Leave the best blend in the network; its share of the trained weights, and what validation says of it."""
    check(all(0 < share < 1 for share in shares), f"shares to blend lie between 0 and 1, not {list(shares)}")
    after = {name: value.detach().clone() for name, value in network.state_dict().items()}
    found = {1.0: dict(validate())}
    for share in shares:
        network.load_state_dict(between(before, after, share))
        found[share] = dict(validate())
    best = max(found, key=lambda share: found[share][select])
    network.load_state_dict(after if best == 1 else between(before, after, best))
    return best, found[best]
