"""The README is true and short: its lines run in order in a fresh folder, its Python as pasted, its links resolve."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.cli.photos import folder
from tests.cli.processes import Lookalike

ROOT = Path(__file__).parents[1]
README, QUICKSTART, LOSSES = ROOT / "README.md", ROOT / "docs" / "quickstart.md", ROOT / "docs" / "losses.md"
SENTENCE = re.compile(r"(?<=[.!?:]) +(?=[A-Z`])")


PAGES = {
    f"{page.name}, block {number}": block
    for page in [README, LOSSES]
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.S))
}


@pytest.mark.parametrize("place", PAGES)
def test_python_in_the_pages_runs_as_pasted(place):
    exec(compile(PAGES[place], place, "exec"), {})
    assert "import torch" in PAGES[place]


def commands(page: Path) -> list[str]:
    blocks = re.findall(r"^```\n(.*?)^```", page.read_text(), re.S | re.M)
    return [line for block in blocks for line in block.splitlines() if line.startswith("lookalike ")]


def test_the_first_lines_run_in_order_in_a_fresh_folder(tmp_path):
    """Those of the guide; the README's are the first of them. `serve`, which does not end, is tried elsewhere."""
    lines = commands(QUICKSTART)
    assert commands(README) == lines[:3]
    first = next(folder(tmp_path / "photos").rglob("*.png"))
    shutil.copy(first, tmp_path / "query.jpg")
    lookalike = Lookalike(tmp_path)
    for line in lines:
        words = shlex.split(line)[1:]
        if words[0] == "serve":
            continue
        placed = [
            words[0],
            *(word if word.startswith("--") or word.isdigit() else tmp_path / word for word in words[1:]),
        ]
        shorter = ["--set", "train.steps=2"] if words[0] == "fit" else []
        completed = lookalike(*placed, *shorter)
        assert completed.code == 0, f"{line}: {completed.error}"
        if words[0] == "search":  # as `fit` has calibrated, among half as many photos: nothing to be done again
            assert "uncalibrated" not in completed.out
            assert "calibrate again" not in completed.out
    assert (tmp_path / "hits.html").is_file()


def test_the_readme_takes_three_minutes():
    text = README.read_text()
    assert len(text.encode()) <= 6 * 1024
    assert len(text.split()) <= 3 * 250


def test_no_sentence_stands_in_two_guides():
    seen: dict[str, str] = {}
    for page in [README, *sorted((ROOT / "docs").glob("*.md"))]:
        text = re.sub(r"```.*?```|^\|.*?$|<!--.*?-->", "", page.read_text(), flags=re.S | re.M)
        for sentence in SENTENCE.split(" ".join(text.split())):
            if len(sentence) >= 60:
                assert seen.setdefault(sentence, page.name) == page.name, f"{page.name}: {sentence}"


def test_links_lead_somewhere():
    pages = [
        README,
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs" / "reference").glob("*.md"),
        ROOT / "CONTRIBUTING.md",
    ]
    for page in pages:
        for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_contributing_is_short():
    """Rules and, with its code, one example."""
    assert len((ROOT / "CONTRIBUTING.md").read_text().splitlines()) <= 130
