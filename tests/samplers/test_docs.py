"""The page about samplers: its examples run, and every sampler is on it with a picture."""

import doctest
from pathlib import Path

import pytest

from lookalike import samplers

DOCS = Path(__file__).parents[2] / "docs"


def test_the_examples_run():
    failures, tried = doctest.testfile(str(DOCS / "samplers.md"), module_relative=False)
    assert tried > 10
    assert failures == 0


@pytest.mark.parametrize("name", samplers.names())
def test_every_sampler_has_a_section_and_a_picture(name):
    page = (DOCS / "samplers.md").read_text()
    assert f"# {name}\n" in page
    assert f"pictures/samplers/{name}.png" in page
    assert (DOCS / "pictures" / "samplers" / f"{name}.png").stat().st_size > 1000
