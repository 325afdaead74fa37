"""Shapes in annotations are checked while testing, and only then; threads are pinned so that two workers share two
cores.

`LOOKALIKE_SHAPES=off` leaves the hook out: compilation, and the errors a user sees on bad input (`-m plain`).
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

if os.environ.get("LOOKALIKE_SHAPES") != "off":
    from tests import shapes

    shapes.install()

import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("lookalike", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("lookalike")


@pytest.fixture(scope="session", autouse=True)
def no_wait_for_the_disk() -> Iterator[None]:
    """What a test writes need not outlive the machine: `os.fsync` is called, and does nothing in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session")
def window() -> Iterator[Any]:
    """A real browser."""
    from tests.fixtures.chromium import chromium, lacking
    from tests.missing import missing

    if lacking():
        missing(lacking())
    with chromium() as opened:
        yield opened


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that was computed before is known, and nothing stays."""
    monkeypatch.setenv("LOOKALIKE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A test marked `plain` is skipped where shapes are checked: scripts/check runs those on their own."""
    if os.environ.get("LOOKALIKE_SHAPES") != "off":
        for item in items:
            if item.get_closest_marker("plain"):
                item.add_marker(pytest.mark.skip(reason="needs LOOKALIKE_SHAPES=off"))
