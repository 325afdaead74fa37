"""The guides: their examples run as they stand, their tables are the numbers that commands wrote beside their pictures.

After running the commands on a page with `--out docs/pictures/PAGE`: `UPDATE_DOCS=1 pytest tests/docs/test_pages.py`.
"""

import doctest
import json
import re
from pathlib import Path

import pytest

from lookalike import samplers
from lookalike.cli.analyse_batch import cell
from papers.theorems import check_theorems
from tests.fixtures.tables_in_docs import check_table

DOCS = Path(__file__).parents[2] / "docs"
PICTURES = DOCS / "pictures"
RUNNING = [page for page in sorted(DOCS.glob("*.md")) if page.read_text(encoding="utf-8").count(">>>") > 1]


@pytest.mark.parametrize("page", RUNNING, ids=lambda page: page.stem)
def test_the_examples_run(page):
    outcome = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert outcome.attempted > 5
    assert outcome.failed == 0


def test_the_programs_about_models_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "models.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 4
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)


def test_the_pages_that_run():
    assert {page.stem for page in RUNNING} >= {"analysis", "data", "evaluation", "report", "samplers", "statements"}


def numbers(name: str) -> dict:
    return json.loads((PICTURES / f"{name}.json").read_text())


def similarity_types() -> str:
    lines = ["| loss | S | P | N |", "|---|---|---|---|"]
    for name, row in numbers("analysis/pair_weights")["paper"].items():
        lines.append(f"| {name} | " + " | ".join("yes" if row[letter] else "" for letter in "SPN") + " |")
    return "\n".join(lines)


def batches() -> str:
    keys = ["classes", "images_per_class", "categories", "positive_pairs", "within", "between", "nearest_negative"]
    lines = ["| sampler | " + " | ".join(key.replace("_", " ") for key in keys) + " |", "|---" * (len(keys) + 1) + "|"]
    for name, row in numbers("analysis/batch_distances").items():
        lines.append(f"| {name} | " + " | ".join(cell(row[key]) for key in keys) + " |")
    return "\n".join(lines)


def theorems() -> str:
    lines = ["| statement | from | cases | failed | least slack | verdict |", "|---|---|---|---|---|---|"]
    for row in numbers("statements/theorems")["statements"]:
        slack = f"{row['worst']:.2g}" if abs(row["worst"]) > 1e-9 else "0"
        remark = f"; {row['remark']}" if row["remark"] else ""
        claim = row["claim"].replace("|", "\\|")
        counts = f"{row['cases']:,} | {row['failures']:,} | {slack}"
        lines.append(f"| {claim} | {row['source']} | {counts} | {row['verdict']}{remark} |")
    return "\n".join(lines)


def toy() -> str:
    columns = ["train", "test", "test recall@1"]
    lines = ["| lines | variant | second value, train | second value, test | recall@1, test |", "|---|---|---|---|---|"]
    for layout in ("diagonal", "vertical"):
        for name, row in numbers(f"statements/toy_{layout}").items():
            cells = [f"{row[column]['mean']:.3f} ± {row[column]['std']:.3f}" for column in columns]
            lines.append(f"| {layout} | {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("page", "name", "table"),
    [
        ("analysis", "paper", similarity_types),
        ("analysis", "batches", batches),
        ("statements", "theorems", theorems),
        ("statements", "toy", toy),
    ],
)
def test_the_tables_are_what_the_commands_wrote(page, name, table):
    check_table(DOCS / f"{page}.md", name, table())


def test_the_statements_on_the_page_are_those_of_the_code():
    rows = numbers("statements/theorems")["statements"]
    shown = {row["name"]: (row["claim"], row["source"], row["verdict"]) for row in rows}
    computed = {each.name: (each.claim, each.source, each.verdict) for each in check_theorems(cases=20)}
    assert shown == computed


@pytest.mark.parametrize("name", samplers.names())
def test_every_sampler_has_a_section_and_a_picture(name):
    page = (DOCS / "samplers.md").read_text()
    assert f"# {name}\n" in page
    assert f"pictures/samplers/{name}.png" in page
