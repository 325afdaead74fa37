"""Small things to train on that are not ours: points in the plane as a plain torch dataset, a plain network."""

import torch
from torch import nn
from torch.utils.data import Dataset

from lookalike import losses, samplers
from lookalike.training import Loop, Objective, Schedule, optimisers

CLASSES, EACH, INPUT, DIM = 6, 8, 5, 4


class Points(Dataset):
    """(point, label), as anybody would write it."""

    def __init__(self, classes=CLASSES, each=EACH, seed=0, rows=False):
        draw = torch.Generator().manual_seed(seed)
        self.labels = torch.arange(classes).repeat_interleave(each)
        centres = torch.randn(classes, INPUT, generator=draw)
        self.points = centres[self.labels] + 0.3 * torch.randn(classes * each, INPUT, generator=draw)
        self.rows = rows

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, row):
        known = self.points[row], int(self.labels[row])
        return (*known, row) if self.rows else known


class Net(nn.Module):
    """With dropout and running statistics: a forgotten random state or buffer shows."""

    def __init__(self, seed=0):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.layers = nn.Sequential(
                nn.Linear(INPUT, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, DIM)
            )

    def forward(self, points):
        return self.layers(points)


def loop(loss=None, *, miner=None, lr=0.01, steps=40, optimiser="adam", objective=None, **changes):
    """A loop over Points; anything in it can be exchanged."""
    network = changes.pop("network", None) or Net()
    dataset = changes.pop("dataset", None) or Points()
    goal = objective or Objective(loss or losses.MultiSimilarity(), miner)
    groups = [{"params": list(network.parameters()), "lr": lr, "name": "head"}, *goal.parameter_groups(lr)]
    balanced = {"labels": dataset.labels, "batch_size": 12, "per_class": 3}
    settings = {
        "optimiser": optimisers.build(optimiser, groups),
        "schedule": Schedule("cosine", steps=steps, warmup=3),
        "sampler": samplers.build("class_balanced", **balanced),
        "dataset": dataset,
    } | changes
    return Loop(network, goal, **settings)


def weights(network):
    """A copy of everything a network holds."""
    return {name: value.detach().clone() for name, value in network.state_dict().items()}


def same(one, other):
    """Bit by bit."""
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)
