"""One tiny folder of photos and one finished run for all tests; each test has caches and processes of its own."""

from pathlib import Path

import pytest

from tests.cli.photos import folder
from tests.cli.processes import Lookalike

SHORT = ("--set", "train.steps=6", "--set", "train.validate_every=3", "--set", "sampler.batch_size=8",
         "--set", "sampler.per_class=2")  # fmt: skip


@pytest.fixture(scope="session")
def photos(tmp_path_factory) -> Path:
    return folder(tmp_path_factory.mktemp("data") / "small photos")


@pytest.fixture
def lookalike(tmp_path) -> Lookalike:
    return Lookalike(tmp_path)


@pytest.fixture(scope="session")
def finished(tmp_path_factory, photos):
    """A run from beginning to end, as a user makes it: its folder and what was printed."""
    place = tmp_path_factory.mktemp("finished")
    ended = Lookalike(place)("fit", photos, "--out", place / "run", *SHORT, "--tensorboard", "--seed", 3)
    assert ended.code == 0, ended.error
    return place / "run", ended
