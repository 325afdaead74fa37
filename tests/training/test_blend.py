"""The average of the weights before and after, in the proportion that validation likes best."""

import pytest
import torch
from torch import nn

from lookalike.errors import UserError
from lookalike.training.blend import between, blend


class Counted(nn.Module):
    """One weight, and a counter that must not be averaged."""

    def __init__(self, weight: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([weight]))
        self.register_buffer("seen", torch.tensor(7))


def closeness_to(goal: float, network: Counted):
    return lambda: {"map@r": 1 - abs(float(network.weight.detach()) - goal), "recall@1": 0.0}


def test_every_weight_is_averaged_and_every_counter_kept():
    before, after = {"a": torch.zeros(3), "n": torch.tensor(1)}, {"a": torch.full((3,), 4.0), "n": torch.tensor(9)}
    best = between(before, after, 0.75)
    assert torch.equal(best["a"], torch.full((3,), 3.0))
    assert best["n"] == 9


@pytest.mark.parametrize(
    ("goal", "share", "weight"), [(0.5, 0.5, 0.5), (0.3, 0.25, 0.25), (2.0, 1.0, 1.0), (-1, 0.25, 0.25)]
)
def test_the_best_share_stays_in_the_network(goal, share, weight):
    network, before = Counted(1.0), Counted(0.0).state_dict()
    best, values = blend(network, before, [0.25, 0.5], closeness_to(goal, network), "map@r")
    assert best == share
    assert float(network.weight.detach()) == weight
    assert values == closeness_to(goal, network)()
    assert network.seen == 7


def test_shares_are_between_nothing_and_all():
    network = Counted(1.0)
    with pytest.raises(UserError, match="between 0 and 1"):
        blend(network, network.state_dict(), [1.5], closeness_to(1, network), "map@r")
