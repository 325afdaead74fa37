"""Every schedule against its formula, step by step."""

import math

import pytest
import torch

from lookalike.errors import UserError
from lookalike.training import Plateau, Schedule
from lookalike.training.schedules import SCHEDULES


def factors(steps=40, **settings):
    schedule = Schedule(steps=steps, **settings)
    return [schedule.factor(step) for step in range(steps)]


def test_the_formulas():
    assert factors(name="constant") == [1.0] * 40
    cosine = [(1 + math.cos(math.pi * step / 40)) / 2 for step in range(40)]
    assert factors(name="cosine") == pytest.approx(cosine)
    expected = [1.0] * 12 + [0.1] * 12 + [0.01] * 16  # [math G.3]: 1200 and 2400, here by a hundredth
    assert factors(name="step", milestones=(12, 24)) == pytest.approx(expected)
    assert set(SCHEDULES) == {"constant", "cosine", "step", "plateau"}


@pytest.mark.parametrize("name", SCHEDULES)
def test_warm_up_rises_in_a_straight_line_and_then_leaves_the_schedule_alone(name):
    given = {"name": name, "milestones": (30,)}
    plain, warmed = factors(**given), factors(**given, warmup=8)
    assert warmed == pytest.approx([min(1, (step + 1) / 8) * value for step, value in enumerate(plain)])
    assert warmed[8:] == plain[8:]


def test_plateau_falls_after_so_many_validations_without_a_new_best():
    schedule, plateau, seen = Schedule("plateau", gamma=0.5), Plateau(patience=2), []
    for value in (0.1, 0.3, 0.3, 0.2, 0.2, 0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1):
        plateau.validated(value)
        seen.append(schedule.factor(0, plateau.reductions))
    #       best  best  1    2    3↓   best  1    2    3↓    1     2     3↓
    assert seen == [1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125]


def test_every_group_keeps_its_own_rate_and_the_backbone_waits():
    weights = [torch.nn.Parameter(torch.zeros(1)) for _ in range(3)]
    named = [("backbone", 1e-4), ("head", 1e-3), ("loss", 1e-2)]
    groups = [{"params": [w], "lr": lr, "name": name} for w, (name, lr) in zip(weights, named, strict=True)]
    optimiser = torch.optim.SGD(groups, lr=1.0)
    schedule = Schedule("cosine", steps=20, head_steps=5, warmup=2)
    for step in range(20):
        schedule.apply(optimiser, step)
        factor = schedule.factor(step)
        rates = [group["lr"] for group in optimiser.param_groups]
        assert rates[1:] == pytest.approx([factor * 1e-3, factor * 1e-2])
        assert rates[0] == (0.0 if step < 5 else pytest.approx(factor * 1e-4))


def test_the_backbone_waits_for_whole_epochs():
    schedule = Schedule(head_epochs=2).over(steps=100, batches=7)
    assert (schedule.steps, schedule.head_steps) == (100, 14)
    assert Schedule(head_steps=3).over(steps=100, batches=7).head_steps == 3
    with pytest.raises(UserError, match=r"head_steps or schedule.head_epochs, not both"):
        Schedule(head_steps=3, head_epochs=1)


def test_a_restored_plateau_continues_as_if_never_interrupted():
    values = [0.1, 0.1, 0.1, 0.2, 0.1, 0.1, 0.1, 0.1]
    whole, first, second = (Plateau(patience=1) for _ in range(3))
    for value in values:
        whole.validated(value)
    for value in values[:3]:
        first.validated(value)
    second.load_state_dict(first.state_dict())
    for value in values[3:]:
        second.validated(value)
    assert second.state_dict() == whole.state_dict()
    assert Schedule("plateau").factor(7, second.reductions) < 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "cosin"}, "did you mean 'cosine'"),
        ({"steps": 0}, "at least one step"),
        ({"warmup": -1}, "at least 0"),
        ({"gamma": 0.0}, "gamma lies between"),
        ({"name": "step"}, "needs milestones"),
    ],
)
def test_mistakes(settings, message):
    with pytest.raises(UserError, match=message):
        Schedule(**settings)
