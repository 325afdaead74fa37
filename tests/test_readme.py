"""The README is true and short: its lines run in order in a fresh folder, its Python as pasted, its links resolve."""

import ast
import re
import shlex
import shutil
from pathlib import Path

import pytest

from lookalike.search import Answer, wording
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
def test_python_in_the_pages_runs_as_pasted(place, capsys):
    exec(compile(PAGES[place], place, "exec"), {})
    assert "import torch" in PAGES[place]
    if place.startswith("README"):
        promised = re.search(r"# ([\d.]+), then ([\d.]+)", PAGES[place]).groups()
        printed = capsys.readouterr().out.split()
        assert [float(value) for value in printed] == pytest.approx([float(value) for value in promised], abs=0.02)


def blocks(page: Path) -> list[list[str]]:
    return [block.splitlines() for block in re.findall(r"^```\n(.*?)^```", page.read_text(), re.S | re.M)]


def commands(page: Path) -> list[str]:
    return [line for block in blocks(page) for line in block if line.startswith("lookalike ")]


def templates() -> list[str]:
    """Sentences of the program with values in them, as patterns."""
    found = []
    for path in (ROOT / "src" / "lookalike").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                said = [part.value if isinstance(part, ast.Constant) else None for part in node.values]
                if sum(len(words) for words in said if words) >= 15:
                    found.append("".join(".*" if words is None else re.escape(words) for words in said))
    return found


def test_what_the_readme_shows_is_what_the_program_says():
    """Every line with a sentence is one of the program's, with values; the other lines are a table of hits."""
    _, ending, hits, *_ = blocks(README)
    patterns = [re.compile(pattern) for pattern in templates()]
    answer = re.fullmatch(r"(probably (.+)) \(match (.+), chance (.+)\)\. (.+)", hits[2])
    match, chance = (float(value.rstrip("%")) / (100 if "%" in value else 1) for value in answer.group(3, 4))
    said = Answer([], "maybe", chance, match=match, label=answer[2], words=answer[1], meaning=answer[5])
    assert wording.in_brief(said) == hits[2]
    sentences = [*ending, hits[0], answer[5]]
    assert [line for line in sentences if not any(pattern.fullmatch(line) for pattern in patterns)] == []


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
        if words[0] == "search":
            assert " ".join(blocks(README)[2][3].split()) in (
                " ".join(row.split()) for row in completed.out.splitlines()
            )
            assert not any(
                words in completed.out for words in ("uncalibrated", "calibrate again")
            )  # `fit` has calibrated
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
