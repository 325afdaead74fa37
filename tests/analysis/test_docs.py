"""The page about analysis: its examples run, and its tables are the numbers the commands wrote beside its pictures.

After running the commands at its top with `--out docs/pictures/analysis`:
`UPDATE_DOCS=1 pytest tests/analysis/test_docs.py`.
"""

import doctest
import json
import os
import re
from pathlib import Path

import pytest

from lookalike import losses
from lookalike.analysis import pair_losses
from lookalike.cli.analyse_batch import cell

PAGE = Path(__file__).parents[2] / "docs" / "analysis.md"
NUMBERS = PAGE.parent / "pictures" / "analysis"


def numbers(name: str) -> dict:
    return json.loads((NUMBERS / f"{name}.json").read_text())


def similarity_types(kind: str) -> str:
    lines = ["| loss | S | P | N |", "|---|---|---|---|"]
    for name, row in numbers("pair_weights")[kind].items():
        lines.append(f"| {name} | " + " | ".join("yes" if row[letter] else "" for letter in "SPN") + " |")
    return "\n".join(lines)


def batches() -> str:
    table = numbers("batch_distances")
    keys = ["classes", "images_per_class", "categories", "positive_pairs", "within", "between", "nearest_negative"]
    lines = ["| sampler | " + " | ".join(key.replace("_", " ") for key in keys) + " |", "|---" * (len(keys) + 1) + "|"]
    for name, row in table.items():
        lines.append(f"| {name} | " + " | ".join(cell(row[key]) for key in keys) + " |")
    return "\n".join(lines)


TABLES = {
    "paper": lambda: similarity_types("paper"),
    "losses": lambda: similarity_types("losses"),
    "batches": batches,
}


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_are_what_the_commands_wrote(name):
    text = PAGE.read_text()
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    before, rest = text.split(begin)
    table, after = rest.split(end)
    if os.environ.get("UPDATE_DOCS"):
        PAGE.write_text(before + begin + TABLES[name]() + "\n" + end + after)
        return
    assert table.strip() == TABLES[name](), "run UPDATE_DOCS=1 pytest tests/analysis/test_docs.py"


def test_the_examples_run():
    failures, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert tried >= 10
    assert failures == 0


def test_every_pair_loss_is_in_the_table():
    assert set(numbers("pair_weights")["losses"]) == set(pair_losses())
    assert set(pair_losses()) < set(losses.names())


def test_every_picture_on_the_page_exists():
    pictures = re.findall(r"\]\((pictures/[^)]+)\)", PAGE.read_text())
    assert len(pictures) == 5
    assert all((PAGE.parent / picture).stat().st_size > 1000 for picture in pictures)
