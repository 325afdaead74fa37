"""Stages of foreign networks: the list of blocks, wherever it is."""

import torch
from torch import nn

from lookalike.models.backbones.detected_stages import detect_stages, watched


def blocks(count, width=4):
    return nn.Sequential(*(nn.Linear(width, width) for _ in range(count)))


class Transformer(nn.Module):
    """A list inside an encoder, and parameters of its own."""

    def __init__(self):
        super().__init__()
        self.token = nn.Parameter(torch.zeros(1))
        self.embeddings = nn.Linear(3, 4)
        self.encoder = nn.Module()
        self.encoder.layer = nn.ModuleList(blocks(2))
        self.norm = nn.LayerNorm(4)
        self.dropout = nn.Dropout()

    def forward(self, x):
        x = self.embeddings(x)
        for layer in self.encoder.layer:
            x = layer(x)
        return self.norm(x)


def test_a_list_inside_an_encoder():
    stages = detect_stages(Transformer(), prefix="network.")
    assert list(stages) == ["embeddings", "encoder.layer.0", "encoder.layer.1", "norm"]
    assert stages["embeddings"] == ("network.embeddings.", "network.token")
    assert stages["encoder.layer.1"] == ("network.encoder.layer.1.",)


def test_lists_side_by_side_are_the_stages():
    network = nn.ModuleDict({"conv": nn.Linear(3, 4), "layer1": blocks(2), "layer2": blocks(3)})
    assert list(detect_stages(network)) == ["conv", "layer1", "layer2"]


def test_a_stem_that_is_a_list_is_not_the_stages():
    network = nn.ModuleDict({"stem": blocks(2, 2), "stages": blocks(3, 20)})
    assert list(detect_stages(network)) == ["stem", "stages.0", "stages.1", "stages.2"]
    single = nn.ModuleDict({"stem": blocks(2, 2), "layer1": nn.Linear(20, 20), "layer2": nn.Linear(20, 20)})
    assert list(detect_stages(single)) == ["stem", "layer1", "layer2"]


def test_watching_ends_with_the_call():
    network, visited = Transformer(), []
    stages = detect_stages(network)
    x = torch.ones(1, 3)
    with watched(network, stages, lambda stage, x: (visited.append(stage), 2 * x)[1]):
        doubled = network(x)
    assert visited == list(stages)
    assert not torch.allclose(doubled, network(x))
    assert visited == list(stages)


def test_hidden_states_come_first_in_a_tuple():
    class Layer(nn.Module):
        def forward(self, x):
            return x, "attention"

    network = nn.Sequential(Layer())
    with watched(network, {"0": ("0.",)}, lambda _stage, x: x + 1):
        assert network(torch.zeros(1)) == (torch.ones(1), "attention")
