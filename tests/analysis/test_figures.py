"""Figures are saved as SVG, PNG and JSON, the same bytes every time."""

import json

import pytest

from lookalike.analysis import save
from lookalike.analysis.figures import panels
from lookalike.errors import UserError


def figure():
    figure, axes = panels(1, 1, (3, 2), "A line that goes up, to be saved twice and compared byte by byte.")
    axes[0, 0].plot([0, 1], [0, 1])
    return figure


def test_saved_twice_is_the_same(tmp_path):
    first, second = (save(figure(), {"end": 1.5}, tmp_path / name, "line") for name in ("a", "b"))
    assert [path.suffix for path in first] == [".svg", ".png", ".json"]
    assert all(one.read_bytes() == other.read_bytes() for one, other in zip(first, second, strict=True))
    assert json.loads(first[2].read_text()) == {"end": 1.5}


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot write .*file"):
        save(figure(), {}, tmp_path / "file", "line")
