"""Every problem provoked for real, and none named where there is none."""

import pytest
import torch
from torch import nn

from lookalike import losses
from lookalike.errors import UserError
from lookalike.runs import checkpoint
from lookalike.training import Health, Plan, train, unreachable_margin
from tests.training.scenes import DIM, INPUT, Net, loop


def rows(count=32, dim=8, seed=0):
    return torch.randn(count, dim, generator=torch.Generator().manual_seed(seed))


def kinds(loop, steps=40, **settings):
    events = []
    train(loop, Plan(steps, validate_every=10, log_every=2, **settings), tell=events.append)
    return [event["kind"] for event in events if event["event"] == "health"], events


class Constant(nn.Module):
    """Says nearly the same of everything."""

    def __init__(self, spread=0.01):
        super().__init__()
        self.linear, self.spread = nn.Linear(INPUT, DIM), spread

    def forward(self, points):
        return 1 + self.spread * self.linear(points).tanh()


def test_a_healthy_run_has_no_trouble():
    assert kinds(loop())[0] == []


def test_collapse_is_named_once_with_its_cosine():
    problems, events = kinds(loop(losses.Triplet(), network=Constant(), optimiser="sgd", lr=1e-9))
    assert problems == ["collapse"]
    (event,) = (event for event in events if event["event"] == "health")
    assert "mean cosine 1.000" in event["advice"]
    assert event["step"] == 2


def test_collapse_is_measured_as_the_mean_cosine_of_different_rows():
    points = nn.functional.normalize(0.08 * rows() + 1, dim=1)
    cosines = points @ points.T
    mean = (cosines.sum() - cosines.diagonal().sum()) / (len(points) * (len(points) - 1))
    named = [problem.advice for problem in Health().look(points, points)]
    assert mean > 0.98
    assert f"{float(mean):.3f}" in named[0]
    assert Health().look(nn.functional.normalize(0.5 * rows() + 1, dim=1), points) == []


def test_one_direction():
    line = torch.linspace(-1, 1, 33)[:, None] * torch.eye(8)[:1] + torch.tensor([0.0, 1, 0, 0, 0, 0, 0, 0])
    flat = torch.cat([line.sign() * torch.eye(8)[:1], -torch.eye(8)[:1]])
    assert [problem.kind for problem in Health().look(flat, flat)] == ["one direction"]
    assert Health().look(rows(), rows()) == []


def test_no_active_tuples_after_five_looks_in_a_row():
    met = losses.Triplet(margin=0.0)
    network = Net()
    problems, _ = kinds(loop(met, network=network, lr=0.02, steps=400), steps=400)
    assert problems == ["no active tuples"]
    health, gradient = Health(), torch.zeros(32, 8)
    looks = [[problem.kind for problem in health.look(rows(), given)] for given in [gradient] * 4 + [rows()]]
    assert looks == [[]] * 5  # one gradient and the count begins anew
    assert [bool(health.look(rows(), gradient)) for _ in range(6)] == [False] * 4 + [True, False]


def test_exploding_norms():
    class Growing(Net):
        def forward(self, points):
            self.times = 1.5 * getattr(self, "times", 1.0)
            return super().forward(points) * self.times

    problems, events = kinds(loop(network=Growing()))
    assert problems == ["exploding norms"]
    advice = next(event["advice"] for event in events if event["event"] == "health")
    assert "times longer" in advice
    assert "embedding_norm" in advice


class Breaking(nn.Module):
    """No numbers from some step on."""

    def __init__(self, step):
        super().__init__()
        self.loss, self.step = losses.MultiSimilarity(), step

    def forward(self, embeddings, labels, step):
        value = self.loss(embeddings, labels)
        return {"loss": value * float("nan") if step == self.step else value}

    def parameter_groups(self, _):
        return []


def test_a_loss_that_is_no_number_stops_the_run_and_keeps_the_checkpoint(tmp_path):
    broken = loop(objective=Breaking(step=17))
    with pytest.raises(UserError, match=r"loss is nan at step 18: lower the learning rate .*") as raised:
        train(broken, Plan(40, validate_every=5), folder=tmp_path)
    assert "\n" not in str(raised.value)
    assert checkpoint.step(tmp_path) == 15
    kept = checkpoint.load(tmp_path)["loop"]["network"]
    assert all(value.isfinite().all() for value in kept.values())
    mended = loop()
    ending = train(mended, Plan(40, validate_every=5), folder=tmp_path)
    assert (ending.steps, mended.step) == (40, 40)


# Hinges whose margin is a distance, where distances end at 2. Of the others it is an angle, a cosine or a ratio.
# (The second margin of quadruplet needs three classes to be seen, which opposite poles do not have.)
KNOWN = {
    "centroid_triplet": {"margin"},
    "contrastive": {"negative_margin"},
    "lifted_structure": {"margin"},
    "margin": {"margin"},
    "margin_contrastive": {"negative_margin"},
    "quadruplet": {"margin"},
    "ranked_list": {"margin"},
    "triplet": {"margin"},
}


@pytest.mark.parametrize("name", losses.names())
def test_no_false_alarm_at_the_settings_and_presets_of_the_papers(name):
    from lookalike.catalog import presets_of

    for preset in (None, *presets_of(losses.MEMBERS[name])):
        for dim in (2, 16):
            assert unreachable_margin(losses.build(name, preset, classes=4, dim=dim)) is None


def settable(name):
    loss = losses.build(name, classes=4, dim=2)
    return [margin for margin in ("margin", "negative_margin", "second_margin") if hasattr(loss, margin)]


@pytest.mark.parametrize("name", [name for name in losses.names() if settable(name)])
def test_margins_that_no_embedding_can_meet_are_known(name):
    problems = set()
    for setting in settable(name):
        try:
            loss = losses.build(name, classes=4, dim=2, **{setting: 6.5})
        except UserError:
            continue  # the loss itself refuses such a margin
        problem = unreachable_margin(loss)
        if problem is not None:
            assert problem.advice.startswith(f"{setting} = 6.5 cannot be met on the")
            problems.add(setting)
    assert problems == KNOWN.get(name, set())


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_called_unreachable_is_and_what_is_not_can_be_reached(name):
    """Against a search over embeddings of one pair and one stranger, the poles among them."""
    places = nn.functional.normalize(rows(3 * 400, 2).double(), dim=1).view(400, 3, 2)
    poles = torch.tensor([[1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64)[None]
    (setting,) = KNOWN[name]
    for value in (0.3, 3.0):
        loss = losses.build(name, **{setting: value}).double()
        least = min(float(loss(points.detach(), torch.tensor([0, 0, 1])).detach()) for points in (*poles, *places))
        assert (unreachable_margin(loss) is not None) == (least > 0)


def test_a_margin_on_squared_distances_reaches_further():
    assert unreachable_margin(losses.Triplet(margin=3.0, squared=True)) is None
    assert unreachable_margin(losses.Triplet(margin=5.0, squared=True)) is not None
    assert unreachable_margin(losses.Triplet(margin=5.0, normalise="none")) is None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 3e38])
def test_looking_at_what_is_not_a_number_is_survived(value):
    good, bad = rows(), rows().index_fill(0, torch.tensor([3]), value)
    kinds = {problem.kind for problem in Health().look(bad, good)} | {
        problem.kind for problem in Health().look(good, bad)
    }
    assert kinds == ({"not numbers"} if value != 3e38 else set())
    once = Health()
    once.look(good, good)
    assert [problem.kind for problem in once.look(bad, good)] == ["not numbers" if value != 3e38 else "exploding norms"]
    assert all("lower the learning rate" in problem.advice for problem in Health().look(bad, good))
