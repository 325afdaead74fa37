"""The README is true: its Python runs as pasted, its table of losses is the catalogue, its links resolve."""

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from docs import loss_tables

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"


@pytest.mark.parametrize("name", ["counts", "losses"])
def test_the_tables_are_the_catalogue(name):
    assert loss_tables.printed(name) == loss_tables.TABLES[name][1](), "run python -m docs.loss_tables"


PAGES = {
    f"{page.name}, block {number}": block
    for page in [README, ROOT / "docs" / "losses.md"]
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.S))
}


SHORT = [place for place in PAGES if "photos/" not in PAGES[place]]


@pytest.mark.parametrize("place", SHORT)
def test_python_in_the_pages_runs_as_pasted(place):
    exec(compile(PAGES[place], place, "exec"), {})
    assert "import torch" in PAGES[place]


@pytest.mark.slow
@pytest.mark.parametrize("place", sorted(PAGES.keys() - SHORT))
def test_python_about_photos_runs_on_photos(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    noise = np.random.default_rng(0).integers(0, 256, (24, 40, 40, 3), dtype=np.uint8)
    for number, pixels in enumerate(noise):
        path = tmp_path / "photos" / f"class {number // 4}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    for name in ("one.jpg", "another.jpg"):
        Image.fromarray(noise[0]).save(name)
    space: dict[str, object] = {}
    exec(compile(PAGES[place].replace("train.minutes=20", "train.steps=2"), place, "exec"), space)
    assert space["vectors"].shape[0] == 2


def test_links_lead_somewhere():
    for page in [README, *(ROOT / "docs").glob("*.md"), ROOT / "CONTRIBUTING.md"]:
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_contributing_is_short():
    """Rules and, with its code, one example."""
    assert len((ROOT / "CONTRIBUTING.md").read_text().splitlines()) <= 130
