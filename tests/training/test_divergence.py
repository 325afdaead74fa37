"""Training that leaves the numbers stops in that step with one line; what was saved before stays good."""

from contextlib import suppress

import pytest
import torch
from torch import nn

from lookalike import losses, miners
from lookalike.errors import NotFiniteError, UserError
from lookalike.evaluation import evaluate
from lookalike.runs import checkpoint
from lookalike.training import Clipping, DivergedError, Plan, train
from tests.training.scenes import Net, Points, loop, same, weights


class Failing(Net):
    """A network that stops giving, or getting, numbers after some steps."""

    def __init__(self, failure, step):
        super().__init__()
        self.failure, self.left = failure, step

    def forward(self, points):
        values = super().forward(points)
        if not self.training:
            return values
        self.left -= 1
        if self.left >= 0:
            return values
        if self.failure == "embeddings":
            return values * float("nan")
        if self.failure == "one infinity":
            return values.index_fill(0, torch.tensor([2]), float("inf"))
        return values + (values.detach() - values).abs().sqrt()  # the root at 0 has an infinite slope


CASES = {
    "embeddings": "the embeddings hold NaN or infinity at step 18",
    "one infinity": "the embeddings hold NaN or infinity at step 18",
    "gradient": "the norm of the gradient is nan at step 18",
}


def stopped(running, tmp_path, **settings):
    with pytest.raises(DivergedError) as raised:
        train(running, Plan(40, validate_every=5), folder=tmp_path, **settings)
    assert isinstance(raised.value, UserError)
    assert "\n" not in str(raised.value)
    assert "lower the learning rate (optimiser.lr)" in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("failure", CASES)
@pytest.mark.parametrize("clipping", [Clipping(), Clipping(norm=1.0, value=1.0)], ids=["plain", "clipped"])
def test_a_step_without_numbers_ends_the_run_and_moves_no_weight(tmp_path, failure, clipping):
    network = Failing(failure, step=17)
    line = stopped(loop(network=network, clipping=clipping), tmp_path)
    assert line.startswith(CASES[failure])
    assert all(value.isfinite().all() for value in network.parameters())
    assert checkpoint.step(tmp_path) == 15
    ending = train(loop(clipping=clipping), Plan(40, validate_every=5), folder=tmp_path)
    assert ending.steps == 40


@pytest.mark.parametrize("name", miners.names())
def test_no_miner_sees_what_is_not_a_number(tmp_path, name):
    loss = losses.Contrastive() if name == "multi_similarity" else losses.Triplet()
    stopped(loop(loss, miner=miners.build(name), network=Failing("embeddings", step=7)), tmp_path)


def test_weights_that_are_not_numbers_are_never_saved(tmp_path):
    network, steps = Net(), iter(range(100))

    def validate():
        if next(steps) == 2:
            network.layers[0].weight.data[0, 0] = float("nan")
        return {"map@r": 0.5}

    line = stopped(loop(network=network), tmp_path, validate=validate)
    assert line.startswith("layers.0.weight holds NaN or infinity at step 10")
    assert checkpoint.step(tmp_path) == 5


def test_where_validation_meets_no_numbers_the_best_weights_come_back(tmp_path):
    network, data, kept = Net(), Points(), []

    def validate():
        kept.append(weights(network))
        if len(kept) == 4:
            with torch.no_grad():
                network.layers[4].bias.fill_(3.4e38)
        with torch.no_grad():
            vectors = network.eval()(data.points) * 2
        return evaluate(vectors, data.labels, metrics=["map@r"])

    with pytest.raises(NotFiniteError):
        evaluate(torch.full((4, 2), float("nan")), [0, 0, 1, 1])
    line = stopped(loop(network=network), tmp_path, validate=validate)
    assert line.startswith("validation meets embeddings that are not numbers at step 15")
    assert checkpoint.step(tmp_path) == 10
    assert any(same(weights(network), before) for before in kept[:3])


@pytest.mark.parametrize("optimiser", ["adam", "adamw", "sgd", "rmsprop"])
@pytest.mark.parametrize("lr", [1e30, 1e38])
def test_a_rate_beyond_all_bounds_ends_in_one_line_or_goes_through(tmp_path, optimiser, lr):
    running = loop(lr=lr, optimiser=optimiser, network=nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 4)))
    with suppress(DivergedError):
        train(running, Plan(40, validate_every=5, log_every=1), folder=tmp_path)
    saved = checkpoint.load(tmp_path)["loop"]["network"]
    assert all(value.isfinite().all() for value in saved.values())
