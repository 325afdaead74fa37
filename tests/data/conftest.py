"""Miniature copies of every official layout, and a cache folder of the test's own."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """No test touches the user's cache; built glyphs are shared within a test run's worker."""
    monkeypatch.setenv("LOOKALIKE_CACHE", str(tmp_path_factory.mktemp("cache", numbered=True)))


@pytest.fixture(scope="session")
def glyph_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("glyphs")


class Pictures:
    """Makes small images that all differ."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.random = np.random.default_rng(0)

    def pixels(self, height=24, width=32) -> np.ndarray:
        coarse = self.random.integers(0, 256, (4, 5, 3), dtype=np.uint8)
        return np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC))

    def save(self, path: str, pixels: np.ndarray | None = None, **settings) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(self.pixels() if pixels is None else pixels).save(file, **settings)
        return file

    def write(self, path: str, lines: list[str]) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return file


@pytest.fixture
def pictures(tmp_path):
    return Pictures(tmp_path / "some photos é")
