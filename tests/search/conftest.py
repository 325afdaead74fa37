"""A folder of small photos: a colour and a pattern per class, so that even a random network tells them apart."""

import numpy as np
import pytest
from PIL import Image

from lookalike.models import Architecture, Model

CLASSES = ("apple", "bread", "cheese", "dates", "endive", "figs")


def photo(label, number, side=40):
    draw = np.random.default_rng([CLASSES.index(label), number])
    base = np.random.default_rng(CLASSES.index(label)).integers(0, 255, (5, 5, 3))
    array = np.kron(base, np.ones((side // 5, side // 5, 1))) + draw.normal(0, 12, (side, side, 3))
    return Image.fromarray(np.clip(array, 0, 255).astype(np.uint8))


@pytest.fixture(scope="session")
def photos(tmp_path_factory):
    root = tmp_path_factory.mktemp("data") / "photos"
    for label in CLASSES:
        (root / label).mkdir(parents=True)
        for number in range(6):
            photo(label, number).save(root / label / f"{number}.png")
    return root


@pytest.fixture(scope="session")
def held_out(tmp_path_factory):
    root = tmp_path_factory.mktemp("data") / "held_out"
    for label in CLASSES:
        (root / label).mkdir(parents=True)
        for number in range(100, 104):
            photo(label, number).save(root / label / f"{number}.png")
    return root


@pytest.fixture(scope="session")
def model():
    return Model.create(Architecture("conv4", {"channels": 3}, dim=16), seed=1)
