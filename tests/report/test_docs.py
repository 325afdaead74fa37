"""The example of the page about reports runs as it stands, and its pictures are there."""

import doctest
import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "report.md"


def test_the_page_runs():
    outcome = doctest.testfile(str(PAGE), module_relative=False)
    assert outcome.attempted > 8
    assert outcome.failed == 0


def test_its_pictures_are_there():
    pictures = re.findall(r"!\[.+?\]\((.+?)\)", PAGE.read_text(encoding="utf-8"))
    assert pictures
    assert all((PAGE.parent / picture).is_file() for picture in pictures)
