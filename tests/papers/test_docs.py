"""The page about statements: its examples run, and its tables are the numbers the commands wrote beside its pictures.

After running the commands at its top with `--out docs/pictures/statements`:
`UPDATE_DOCS=1 pytest tests/papers/test_docs.py`.
"""

import doctest
import json
import os
import re

import pytest

from papers.reproduction.planned import ROOT
from papers.theorems import check_theorems

PAGE = ROOT / "docs" / "statements.md"
NUMBERS = PAGE.parent / "pictures" / "statements"


def numbers(name: str) -> dict:
    return json.loads((NUMBERS / f"{name}.json").read_text())


def theorems() -> str:
    lines = ["| statement | from | cases | failed | least slack | verdict |", "|---|---|---|---|---|---|"]
    for row in numbers("theorems")["statements"]:
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
        for name, row in numbers(f"toy_{layout}").items():
            cells = [f"{row[column]['mean']:.3f} ± {row[column]['std']:.3f}" for column in columns]
            lines.append(f"| {layout} | {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


TABLES = {"theorems": theorems, "toy": toy}


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_are_what_the_commands_wrote(name):
    text = PAGE.read_text()
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    before, rest = text.split(begin)
    table, after = rest.split(end)
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(before + begin + TABLES[name]() + "\n" + end + after)
        return
    assert table.strip() == TABLES[name](), "run UPDATE_DOCS=1 pytest tests/papers/test_docs.py"


def test_the_examples_run():
    failures, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert tried > 5
    assert failures == 0


def test_the_statements_on_the_page_are_those_of_the_code():
    shown = {row["name"]: (row["claim"], row["source"], row["verdict"]) for row in numbers("theorems")["statements"]}
    computed = {each.name: (each.claim, each.source, each.verdict) for each in check_theorems(cases=20)}
    assert shown == computed


def test_every_picture_on_the_page_exists():
    pictures = re.findall(r"\]\((pictures/[^)]+)\)", PAGE.read_text())
    assert len(pictures) == 4
    assert all((PAGE.parent / picture).stat().st_size > 1000 for picture in pictures)
