"""The page about data does what it says."""

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "data.md"


def test_the_examples_run():
    result = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert result.attempted > 8
    assert not result.failed
