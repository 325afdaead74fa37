"""The page about training does what it says."""

import re
from pathlib import Path

import pytest

from lookalike.data import load

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
