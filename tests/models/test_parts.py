"""An embedding is the sum of its parts, one for every place of the picture, however it is pooled and read."""

import numpy as np
import pytest
import torch
from torch import nn

from lookalike.errors import UserError
from lookalike.models import Architecture, Model, Preprocessing, Readout
from lookalike.models.parts import parts_of
from lookalike.models.preprocess import prepare

HOW = Preprocessing(crop=48, resize=48)
WIDTH = 8


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).integers(0, 256, (3, 48, 48, 3), dtype=np.uint8)


def built(**settings):
    model = Model.create(Architecture("conv4", {"width": WIDTH}, **settings), seed=3, preprocessing=HOW)
    linear = getattr(model.embedder.head, "linear", None)
    if linear is not None and linear.bias is not None:
        nn.init.normal_(linear.bias)
    return model


def read(model, readout):
    axes = None if readout.components is None else torch.randn(readout.components, WIDTH)
    return model.with_readout(readout, torch.rand(WIDTH) / 4, axes)


MODELS = {
    "mean": lambda: built(dim=5),
    "features": lambda: built(dim=None),
    "mean and maximum": lambda: built(dim=5, pooling="avg_max"),
    "generalised mean": lambda: built(dim=5, pooling="gem"),
    "layer norm": lambda: built(dim=5, layer_norm=True),
    "hidden layer": lambda: built(dim=5, hidden=7),
    "centred": lambda: read(built(dim=5), Readout("features")),
    "components": lambda: read(built(dim=5, pooling="gem"), Readout("features", components=3)),
    "both": lambda: read(built(dim=5), Readout("both", components=3, head_weight=0.3)),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("geometry", ["sphere", "ball", "none"])
def test_the_parts_add_up_to_the_embedding(name, geometry, images):
    model = MODELS[name]()
    model.geometry = geometry
    parts = parts_of(model, prepare(images, HOW))
    assert parts.grid == (3, 3)
    assert parts.vectors.shape == (3, 9, model.embedder.dim)
    torch.testing.assert_close(parts.vectors.sum(1), model.encode(images), atol=2e-6, rtol=2e-5)


def test_a_part_follows_its_own_place(images):
    """With one position covered by others' values, only what a convolution sees of it changes."""
    model = built(dim=None)
    model.geometry = "none"
    changed = images.copy()
    changed[:, :4, :4] = 0  # far from the last position
    before, after = (parts_of(model, prepare(each, HOW)).vectors for each in (images, changed))
    assert (before[:, 0] - after[:, 0]).abs().max() > 1e-3
    assert (before[:, 8] - after[:, 8]).abs().max() < 1e-6


def test_a_class_token_lies_nowhere():
    from lookalike.models.pooling import ClassToken, ClassTokenAverage

    tokens = torch.randn(2, 10, 4)
    both = ClassTokenAverage()
    torch.testing.assert_close(both.shares(tokens, 1).sum(2), both(tokens, 1))
    model = built(dim=None)
    model.embedder.pooling = ClassToken()
    with pytest.raises(UserError, match="class token"):
        parts_of(model, torch.zeros(1, 3, 48, 48))


def test_a_network_of_your_own_is_refused():
    with pytest.raises(UserError, match="your own"):
        parts_of(Model(nn.Flatten(), HOW), torch.zeros(1, 3, 48, 48))
