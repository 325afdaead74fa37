"""CCP: its invariants and losses [math E, A20], and a run that is killed and resumed."""

import copy
import math
import re
from dataclasses import fields
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from lookalike import losses, samplers
from lookalike.cluster import greedy_k_center
from lookalike.errors import UserError
from lookalike.targets import Pairs
from lookalike.training import Clipping, Loop, Plan, Schedule, StoppedError, optimisers, train
from lookalike.training.ccp import FORMS, Chance, ChanceConstraints, ProxyObjective, farthest
from lookalike.training.pool import Pool, Queues

CLASSES, EACH, DIM = 5, 9, 3
LABELS = torch.arange(CLASSES).repeat_interleave(EACH)
POINTS = torch.randn(CLASSES * EACH, 6, generator=torch.Generator().manual_seed(0))


def network():
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(0.1), nn.Linear(12, DIM))


def base(name):
    return losses.build(name, **FORMS[name])


def loop(settings=None, loss="margin_contrastive", weight_decay=0.0, seed=0, optimiser="adam"):
    settings = settings or Chance(proxies=2, pool=4)
    net = network()
    goal = ProxyObjective(base(loss), settings, CLASSES, DIM)
    groups = [{"params": list(net.parameters()), "lr": 0.01, "name": "backbone"}, *goal.parameter_groups(0.01)]
    step = optimisers.build(optimiser, groups)
    dataset = TensorDataset(POINTS, LABELS)
    trainer = Loop(
        net,
        goal,
        step,
        Schedule(steps=50),
        dataset,
        samplers.ClassQueue(LABELS, 12, 3, seed=seed),
        clipping=Clipping(10, 10),
    )
    trainer.strategy = ChanceConstraints(net, goal, step, Pool(dataset, LABELS, seed=seed), weight_decay)
    return trainer


def pool_of(trainer, count):
    """What the next pool will be: the same queues, the network in inference mode."""
    queues = copy.deepcopy(trainer.strategy.pool.queues)
    with torch.no_grad():
        return copy.deepcopy(trainer.network).eval()(POINTS[queues.draw(count)].flatten(0, 1)).view(CLASSES, count, DIM)


@pytest.mark.parametrize("name", FORMS)
def test_the_objective_is_the_base_loss_against_proxies_and_a_tenth_within_the_batch(name):
    goal = ProxyObjective(base(name), Chance(proxies=3), 4, DIM)
    draw = torch.Generator().manual_seed(2)
    goal.proxies.data.normal_(0, 2, generator=draw)
    rows, labels = torch.randn(8, DIM, generator=draw), torch.tensor([0, 0, 1, 1, 2, 2, 3, 3])
    terms = goal(rows, labels, 0)
    own = torch.tensor([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3])
    across = base(name)(rows, Pairs.across(labels, own), candidates=goal.proxies)
    assert torch.allclose(terms["loss"], across)
    assert torch.allclose(terms["pairs"], 0.1 * base(name)(rows, labels))
    sum(terms.values()).backward()
    assert goal.proxies.grad.isfinite().all()
    assert goal.proxies.grad.any()


def test_cosine_contrastive_against_proxies_as_plain_loops():
    goal = ProxyObjective(base("cosine_contrastive"), Chance(proxies=2, pair_weight=0), 2, 2)
    goal.proxies.data = torch.tensor([[3.0, 0.0], [0.5, 0.5], [0.0, 2.0], [-0.1, 0.2]])
    rows, labels = torch.tensor([[2.0, 1.0], [0.2, 0.9]]), torch.tensor([0, 1])

    def ball(vector):
        return vector / max(1.0, float(vector.norm()))

    total = 0.0
    for row, label in zip(rows, labels.tolist(), strict=True):
        for number, proxy in enumerate(goal.proxies.data):
            cosine = float(ball(row) @ ball(proxy))
            total += max(0.0, 1 - cosine) if number // 2 == label else max(0.0, cosine - 0.5)
    terms = goal(rows, labels, 0)
    assert list(terms) == ["loss"]
    assert math.isclose(terms["loss"].item(), total / 2, rel_tol=1e-5)


def test_the_first_proxies_are_pool_points_far_from_the_origin():
    trainer = loop(Chance(proxies=2, pool=4))
    points = pool_of(trainer, 4)
    instance_event = trainer.strategy.begin()
    proxies = trainer.objective.proxies.data.view(CLASSES, 2, DIM)
    for cls in range(CLASSES):
        assert torch.allclose(proxies[cls, 0], points[cls][points[cls].norm(dim=1).argmax()])
        assert all((points[cls] - proxy).norm(dim=1).min() < 1e-6 for proxy in proxies[cls])
    assert trainer.strategy.pull == 0.0  # λ_0 = 0
    assert instance_event["instance"] == 0
    assert instance_event["covering_radius"] > 0
    assert instance_event["between_classes"] > 0


def converge(trainer, values=(0.5, 0.4, 0.4, 0.4)):
    events = [trainer.strategy.validated(step, value) for step, value in enumerate(values, start=1)]
    assert events[:-1] == [None] * (len(values) - 1)
    return events[-1]


def test_a_converged_instance_replaces_the_proxies_and_nothing_else():
    trainer = loop(Chance(proxies=2, pool=4))
    trainer.strategy.begin()
    for _ in range(3):
        trainer.advance()
    assert trainer.strategy.validated(1, 0.5) is None
    best, best_proxies = copy.deepcopy(dict(trainer.network.named_parameters())), trainer.objective.proxies.data.clone()
    for step in (2, 3):
        trainer.advance()
        assert trainer.strategy.validated(step, 0.5 + 1e-6) is None  # not an improvement of 1e-5
    trainer.advance()
    before = copy.deepcopy(trainer.network.state_dict())
    moments = {key: value.clone() for key, value in trainer.optimiser.state[trainer.objective.proxies].items()}
    points = pool_of(trainer, 4)
    instance_event = trainer.strategy.validated(4, 0.4)
    assert instance_event["instance"] == trainer.strategy.instance == 1
    assert trainer.strategy.pull == 2e-4
    for name, value in trainer.network.state_dict().items():  # θ is not reset, and the pool left no trace in it
        assert torch.equal(value, before[name])
    for name, value in trainer.strategy.anchor.items():
        assert torch.equal(value, best[name])
    for key, value in trainer.optimiser.state[trainer.objective.proxies].items():
        assert torch.equal(value, moments[key])
    assert trainer.network.training
    proxies = trainer.objective.proxies.data.view(CLASSES, 2, DIM)  # C · K, as before, all from the pool
    where = greedy_k_center(points, 2, best_proxies.view(CLASSES, 2, DIM))
    assert torch.allclose(proxies, points.take_along_dim(where[..., None], 1), atol=1e-6)
    assert trainer.strategy.watch.best == -math.inf
    assert trainer.strategy.watch.bad == 0


def test_distances_to_the_nearest_centre_never_grow_while_choosing():
    draw = torch.Generator().manual_seed(3)
    points, old = torch.randn(4, 7, DIM, generator=draw), torch.randn(4, 2, DIM, generator=draw)
    proxies = farthest(points, old, Chance(proxies=5, pool=7))
    centres, last = old, torch.full((4,), math.inf)
    for k in range(5):
        nearest = torch.cdist(points, centres).amin(2)
        far = nearest.amax(1)
        assert bool((far <= last + 1e-6).all())
        assert torch.allclose(torch.cdist(proxies[:, k : k + 1], centres).amin(2)[:, 0], far, atol=1e-6)
        centres, last = torch.cat([centres, proxies[:, k : k + 1]], 1), far


def test_fewer_points_than_proxies_repeat_one():
    same = torch.ones(1, 3, DIM)
    assert torch.equal(farthest(same, torch.zeros(1, 1, DIM), Chance(proxies=3, pool=3)), same)


def test_one_proxy_from_a_pool_of_one_is_random_again():
    trainer = loop(Chance(proxies=1, pool=1))
    trainer.strategy.begin()
    for instance in (1, 2):
        points = pool_of(trainer, 1)
        converge(trainer)
        assert trainer.strategy.instance == instance
        assert torch.allclose(trainer.objective.proxies.data, points[:, 0], atol=1e-6)


@pytest.mark.parametrize(("proxies", "pool", "pooled"), [(8, 12, 12), (4, 7, 7), (1, 12, 12), (8, 3, 24), (3, 1, 3)])
def test_sizes_of_the_pool(proxies, pool, pooled):
    assert Chance(proxies=proxies, pool=pool).pooled == pooled


def test_a_pool_of_one_takes_all_draws_without_k_center():
    trainer = loop(Chance(proxies=3, pool=1))
    points = pool_of(trainer, 3)
    trainer.strategy.begin()
    assert torch.allclose(trainer.objective.proxies.data.view(CLASSES, 3, DIM), points, atol=1e-6)


def test_k_center_on_the_ball_is_an_option():
    points = torch.tensor([[[9.0, 0.0, 0.0], [0.0, 8.0, 0.0], [0.0, 0.0, 0.5]]])
    old = torch.tensor([[[1.0, 0.0, 0.0]]])
    raw = farthest(points, old, Chance(proxies=1, pool=3))
    ball = farthest(points, old, Chance(proxies=1, pool=3, normalised=True))
    assert raw.flatten().tolist() == [0.0, 8.0, 0.0]
    assert ball.flatten().tolist() == [0.0, 8.0, 0.0]
    far = torch.tensor([[[0.9, 0.0, 0.0]]])
    wide = torch.tensor([[[90.0, 0.0, 0.0], [0.0, 0.9, 0.0]]])
    assert farthest(wide, far, Chance(proxies=1, pool=2)).flatten()[0] == 90
    assert farthest(wide, far, Chance(proxies=1, pool=2, normalised=True)).flatten()[1] == pytest.approx(0.9)


def test_queues_give_every_image_before_any_again():
    queues = Queues(LABELS, seed=0)
    first = torch.cat([queues.draw(4), queues.draw(5)], 1)
    assert first.sort(1).values.tolist() == torch.arange(CLASSES * EACH).view(CLASSES, EACH).tolist()
    second = queues.draw(9)
    assert second.sort(1).values.tolist() == first.sort(1).values.tolist()
    assert second.tolist() != first.tolist()
    with pytest.raises(UserError, match="dense"):
        Queues(torch.tensor([0, 2]), seed=0)


def test_pull_decay_and_clipping_are_added_to_the_gradients():
    trainer = loop(Chance(proxies=2, pool=4, pull=0.5, pull_decay=0.1), weight_decay=0.01)
    trainer.strategy.begin()
    trainer.strategy.instance = 2
    trainer.strategy.anchor = {name: torch.zeros_like(part) for name, part in trainer.network.named_parameters()}
    for parameter in (*trainer.network.parameters(), trainer.objective.proxies):
        parameter.grad = torch.zeros_like(parameter)
    trainer.strategy.gradients()
    assert math.isclose(trainer.strategy.pull, 0.5 * 0.1**2)
    for name, part in trainer.network.named_parameters():
        factor = 0.005 + (0 if name.startswith("1.") else 0.01)  # batch normalisation does not decay
        assert torch.allclose(part.grad, factor * part, atol=1e-8)
    assert torch.allclose(trainer.objective.proxies.grad, 0.01 * trainer.objective.proxies)


def test_the_pull_is_the_gradient_of_half_the_squared_distance():
    trainer = loop(optimiser="sgd")
    trainer.strategy.begin()
    trainer.strategy.instance = 1
    draw = torch.Generator().manual_seed(9)
    trainer.strategy.anchor = {
        name: torch.randn(part.shape, generator=draw) for name, part in trainer.network.named_parameters()
    }
    theta = dict(trainer.network.named_parameters())
    half = sum((theta[name] - part).square().sum() for name, part in trainer.strategy.anchor.items()) / 2
    expected = torch.autograd.grad(trainer.strategy.pull * half, list(theta.values()))
    for part in theta.values():
        part.grad = torch.zeros_like(part)
    trainer.strategy.gradients()
    for part, slope in zip(theta.values(), expected, strict=True):
        assert torch.allclose(part.grad, slope, atol=1e-9)


def test_moments_of_proxies_are_forgotten_on_request():
    trainer = loop(Chance(proxies=2, pool=4, reset_proxy_state=True))
    trainer.strategy.begin()
    trainer.advance()
    converge(trainer)
    assert trainer.objective.proxies not in trainer.optimiser.state


def validation(trainer, script):
    """Validation values as a script of the step: the instances converge where we want."""
    return lambda: {"map@r": script(trainer.step)}


def wave(step):
    return 0.5 + 0.01 * min(step, 4) - 0.001 * step


def kept(trainer):
    return trainer.network.state_dict() | {"proxies": trainer.objective.proxies.data}


def test_killed_and_resumed_is_bit_identical(tmp_path):
    quick = Chance(proxies=2, pool=4, patience=1)
    plan, events, straight = Plan(16, validate_every=2), [], loop(quick)
    train(straight, plan, validate=validation(straight, wave), tell=events.append)
    assert [event["instance"] for event in events if "instance" in event] == [0, 1, 2, 3]
    first = loop(quick)
    with pytest.raises(StoppedError):
        train(first, plan, validate=validation(first, wave), folder=tmp_path, stop=lambda: first.step == 9)
    second = loop(quick)
    train(second, plan, validate=validation(second, wave), folder=tmp_path)
    assert second.strategy.instance == straight.strategy.instance == 3
    for name, value in kept(straight).items():
        assert torch.equal(value, kept(second)[name]), name


def test_the_untrained_network_and_the_end_are_no_part_of_an_instance():
    trainer = loop(Chance(proxies=2, pool=4, patience=1))
    seen = []
    trainer.strategy.validated = lambda step, value: seen.append((step, value))
    train(trainer, Plan(4, validate_every=1, select="map@r"), validate=lambda: {"map@r": 0.5})
    assert [step for step, _ in seen] == [1, 2, 3]


def test_it_learns():
    trainer = loop(Chance(proxies=2, pool=4))
    train(trainer, Plan(50, validate_every=10), validate=lambda: {"map@r": trainer.step / 100})
    first, last = loop(), trainer.advance()
    first.strategy.begin()
    assert last.terms["loss"] < first.advance().terms["loss"]


def test_impossible_settings_are_refused():
    for wrong in ({"proxies": 0}, {"pool": 0}, {"pull": -1.0}, {"pair_weight": -0.1}):
        with pytest.raises(UserError, match=f"ccp.{next(iter(wrong))}"):
            Chance(**wrong)


def test_the_page_about_it_runs_as_pasted(capsys):
    page = (Path(__file__).parents[2] / "docs" / "ccp.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", page, re.S)
    exec(compile(block, "docs/ccp.md", "exec"), {})
    assert "instance 1, covering radius" in capsys.readouterr().out


def test_the_page_names_every_key():
    page = (Path(__file__).parents[2] / "docs" / "ccp.md").read_text()
    assert [field.name for field in fields(Chance) if f"`{field.name}`" not in page] == []
