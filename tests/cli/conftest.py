"""One tiny folder of photos and one finished run for all tests, which share a cache."""

from pathlib import Path

import pytest

from tests.cli.photos import folder
from tests.cli.processes import Lookalike

collect_ignore = ["preloaded.py"]  # for the server of processes.py alone
SHORT = (
    "--set",
    "train.steps=6",
    "--set",
    "train.validate_every=3",
    "--set",
    "sampler.batch_size=8",
    "--set",
    "sampler.per_class=2",
    "--set",
    "train.deliver=trained",
)


@pytest.fixture(scope="session")
def photos(tmp_path_factory) -> Path:
    return folder(tmp_path_factory.mktemp("data") / "small photos")


@pytest.fixture(scope="session")
def cache(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def lookalike(tmp_path, cache) -> Lookalike:
    return Lookalike(tmp_path, cache)


@pytest.fixture(scope="session")
def finished(tmp_path_factory, photos, cache):
    """A whole run, as a user starts it: its folder and the completed process."""
    place = tmp_path_factory.mktemp("finished")
    completed = Lookalike(place, cache)("fit", photos, "--out", place / "run", *SHORT, "--tensorboard", "--seed", 3)
    assert completed.code == 0, completed.error
    return place / "run", completed
