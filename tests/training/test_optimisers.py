"""Optimisers, clipping and early stopping against torch and against plain loops."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lookalike.errors import UserError
from lookalike.training import Clipping, EarlyStop, optimisers

PLAIN = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "rmsprop": torch.optim.RMSprop,
    "sgd": torch.optim.SGD,
}


@pytest.mark.parametrize("name", optimisers.names())
def test_an_optimiser_by_name_does_what_torch_does(name):
    settings = {"momentum": 0.9} if name in ("sgd", "rmsprop") else {}
    finals = []
    for build in (lambda g: optimisers.build(name, g, **settings), lambda g: PLAIN[name](g, **settings)):
        parameters = [torch.nn.Parameter(torch.arange(3.0)), torch.nn.Parameter(torch.ones(2))]
        groups = [
            {"params": parameters[:1], "lr": 0.1, "weight_decay": 0.01},
            {"params": parameters[1:], "lr": 0.02, "weight_decay": 0.0},
        ]
        optimiser = build(groups)
        for _ in range(5):
            optimiser.zero_grad()
            sum((parameter - 3).square().sum() for parameter in parameters).backward()
            optimiser.step()
        finals.append(torch.cat([parameter.detach() for parameter in parameters]))
    assert torch.allclose(*finals, rtol=1e-5)


@pytest.mark.parametrize("name", optimisers.names())
@pytest.mark.parametrize("rate", [-1.0, math.nan, math.inf])
def test_a_rate_that_is_not_one_is_refused(name, rate):
    groups = [{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": rate}]
    with pytest.raises(UserError, match=rf"^the learning rate \(optimiser\.lr\) must be a number .* not {rate}"):
        optimisers.build(name, groups)


def test_mistakes():
    group = [{"params": [torch.nn.Parameter(torch.zeros(1))], "lr": 0.1}]
    with pytest.raises(UserError, match="did you mean 'rmsprop'"):
        optimisers.build("rmsprob", group)
    with pytest.raises(UserError, match="did you mean 'momentum'"):
        optimisers.build("sgd", group, momentun=0.9)
    with pytest.raises(UserError, match=r"^the optimiser sgd cannot run: invalid momentum value: -1$"):
        optimisers.build("sgd", group, momentum=-1)
    with pytest.raises(UserError, match="nothing to train"):
        optimisers.build("adam", [{"params": [], "lr": 0.1}])


def gradients(scale):
    parameters = [torch.nn.Parameter(torch.zeros(4)), torch.nn.Parameter(torch.zeros(2, 3))]
    draw = torch.Generator().manual_seed(0)
    for parameter in parameters:
        parameter.grad = scale * torch.randn(parameter.shape, generator=draw)
    return parameters


@pytest.mark.parametrize("scale", [0.01, 10.0])
def test_clipping_limits_the_norm_first_and_then_every_value(scale):
    before = torch.cat([parameter.grad.flatten() for parameter in gradients(scale)])
    parameters = gradients(scale)
    Clipping(norm=2.0, value=0.5)(parameters)
    after = torch.cat([parameter.grad.flatten() for parameter in parameters])
    assert torch.allclose(after, (before * min(1.0, 2.0 / float(before.norm()))).clamp(-0.5, 0.5), rtol=1e-5)
    untouched = gradients(scale)
    Clipping()(untouched)
    assert torch.equal(torch.cat([parameter.grad.flatten() for parameter in untouched]), before)


@given(st.lists(st.sampled_from([0.1, 0.2, 0.200005, 0.3, 0.5]), max_size=30), st.integers(1, 4))
def test_early_stopping_counts_as_a_loop_does(values, patience):
    watch = EarlyStop(patience, min_improvement=1e-5)
    best, best_step, bad = -math.inf, 0, 0
    for step, value in enumerate(values):
        better = value - best > 1e-5
        best, best_step, bad = (value, step, 0) if better else (best, best_step, bad + 1)
        assert watch.improved(step, value) == better
        assert (watch.best, watch.best_step, watch.over) == (best, best_step, bad >= patience)
    again = EarlyStop(patience)
    again.load_state_dict(watch.state_dict())
    assert again.state_dict() == watch.state_dict()


def test_without_patience_it_never_stops():
    watch = EarlyStop()
    assert [watch.improved(step, 0.0) for step in range(1000)][1:] == [False] * 999
    assert not watch.over
    with pytest.raises(UserError, match="at least 1 validation"):
        EarlyStop(patience=0)


@pytest.mark.parametrize("name", optimisers.names())
def test_a_restored_state_goes_on_in_the_layout_of_its_parameters(name):
    """What a checkpoint holds is contiguous; a network may be channels-last. The end is the same, bit by bit."""
    settings = {"momentum": 0.9} if name in ("sgd", "rmsprop") else {}

    def begun():
        start = torch.randn(4, 3, 3, 3, generator=torch.Generator().manual_seed(0))
        weight = torch.nn.Parameter(start.to(memory_format=torch.channels_last))
        return weight, optimisers.build(name, [{"params": [weight], "lr": 0.1}], **settings)

    def advance(weight, optimiser, steps):
        for number in range(steps):
            gradient = torch.randn(4, 3, 3, 3, generator=torch.Generator().manual_seed(number))
            weight.grad = gradient.to(memory_format=torch.channels_last)
            optimiser.step()

    straight, optimiser = begun()
    advance(straight, optimiser, 3)
    state = optimiser.state_dict()
    flat = {
        place: {
            key: value.clone(memory_format=torch.contiguous_format) for key, value in kept.items() if value is not None
        }
        for place, kept in state["state"].items()
    }
    resumed, other = begun()
    resumed.data.copy_(straight.data)
    optimisers.restore(other, {**state, "state": flat})
    advance(straight, optimiser, 3)
    advance(resumed, other, 3)
    assert torch.equal(straight, resumed)
