"""The head as principal components, against the eigenvectors of the covariance."""

import pytest
import torch

from lookalike.errors import UserError
from lookalike.models import Conv4, Embedder
from lookalike.training import principal

WIDTH, DIM = 64, 5


def points(count=200):
    draw = torch.Generator().manual_seed(0)
    return torch.randn(count, WIDTH, generator=draw) * torch.linspace(3, 0.1, WIDTH) + 0.5


@pytest.mark.parametrize("layer_norm", [False, True])
def test_outputs_are_the_principal_components(layer_norm):
    embedder = Embedder(Conv4(channels=1), dim=DIM, layer_norm=layer_norm)
    given = points()
    principal(embedder, given)
    with torch.no_grad():
        outputs = embedder.head(given).double()
    before = torch.nn.functional.layer_norm(given, (WIDTH,)) if layer_norm else given
    centred = (before - before.mean(0)).double()
    values, vectors = torch.linalg.eigh(centred.T @ centred)
    expected = centred @ vectors.flip(1)[:, :DIM]
    scale = before.norm(dim=1).mean()
    for component in range(DIM):
        one, other = outputs[:, component] * scale, expected[:, component]
        assert torch.allclose(one, other, atol=1e-3) or torch.allclose(one, -other, atol=1e-3)
    assert outputs.mean(0).abs().max() < 1e-5
    assert values.flip(0)[0] > values.flip(0)[DIM]


def test_mistakes():
    with pytest.raises(UserError, match="no linear head"):
        principal(Embedder(Conv4(channels=1), dim=None), points())
    with pytest.raises(UserError, match="need as many images"):
        principal(Embedder(Conv4(channels=1), dim=DIM), points(3))
