"""The page about training does what it says."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from lookalike.data import load
from lookalike.recipe.settings import Recipe
from lookalike.recipe.toml import keys

pytestmark = pytest.mark.plain  # whole trainings: checks of shapes take longer than they do

PAGE = (Path(__file__).parents[2] / "docs" / "training.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.S)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_python_runs_as_pasted(number, tmp_path, capsys):
    glyphs = load("glyphs")
    space = {"FOLDER": tmp_path / "run", "SOME": glyphs.subset(glyphs.labels % 20 == 0)}  # all of them take a minute
    exec(compile(BLOCKS[number].replace('fit("glyphs"', "fit(SOME"), f"block {number}", "exec"), space)
    assert capsys.readouterr().out


def test_the_table_of_keys_is_complete():
    rows = dict(re.findall(r"^\| (`\[.*?) \| (.*?) \|$", PAGE, re.M))
    written = {name: keys for names, keys in rows.items() for name in re.findall(r"\[(\w+)", names)}
    tables = {field.name: field for field in fields(Recipe) if field.name != "seed"}
    assert written.keys() == tables.keys()
    for name in (
        "data",
        "protocol",
        "images",
        "model",
        "head",
        "memory",
        "optimiser",
        "schedule",
        "train",
        "evaluation",
    ):
        known = keys(type(tables[name].default))
        missing = [key for key in known if key not in ("settings", "log_every") and f"`{key}`" not in written[name]]
        assert not missing, f"docs/training.md does not say that [{name}] has {missing}"
