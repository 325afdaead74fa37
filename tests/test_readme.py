"""The README is true: its Python runs as pasted, its table of losses is the catalogue, its links resolve.

After adding a loss: `UPDATE_README=1 pytest tests/test_readme.py`.
"""

import inspect
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lookalike import losses, miners, samplers
from tests.test_references import REFERENCE, references

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
BEGIN, END = "<!-- losses -->\n", "<!-- /losses -->"


def docstring(member: type) -> str:
    """The docstring of the file a loss is written in."""
    return sys.modules[member.__module__].__doc__ or ""


def paper(member: type) -> str:
    """The first citation of the file."""
    first = REFERENCE.sub("", docstring(member).split("\n\n")[0].replace("\n", " "))
    return re.split(r"; | \(HPL-PA", first)[0].strip(" .")


def formula(member: type) -> str:
    """Links to the sections that the file cites, without errata."""
    sections = [section for _, section in references(docstring(member)) if not section.startswith("err-")]
    links = [f"[{section.capitalize()}](docs/mathematics.md#{section})" for section in sections]
    assert links, f"{member.__name__} cites no formula of docs/mathematics.md: cite its section there"
    return ", ".join(links)


def table() -> str:
    lines = ["| loss | paper | geometry | formula |", "|---|---|---|---|"]
    for name in losses.names():
        member = losses.MEMBERS[name]
        does = (inspect.getdoc(member) or "").split("\n\n")[0].replace("\n", " ")
        lines.append(f"| [`{name}`](src/lookalike/losses/{name}.py) | {paper(member)} | {does} | {formula(member)} |")
    return "\n".join(lines) + "\n"


def test_the_table_of_losses_is_the_catalogue():
    text = README.read_text()
    before, rest = text.split(BEGIN)
    printed, after = rest.split(END)
    if os.environ.get("UPDATE_README"):
        README.write_text(before + BEGIN + table() + END + after)
        return
    assert printed == table(), "run UPDATE_README=1 pytest tests/test_readme.py"


def test_the_counts_are_those_of_the_catalogues():
    counts = [len(catalogue.names()) for catalogue in (losses, miners, samplers)]
    assert "**{} losses, {} miners, {} batch samplers**".format(*counts) in README.read_text()


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
    assert len((ROOT / "CONTRIBUTING.md").read_text().splitlines()) <= 60
