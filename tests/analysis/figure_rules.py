"""What every figure must have: axis labels and a caption that says what to see."""

from typing import Any


def assert_readable(figure: Any, pictures: bool = False) -> None:
    """The outer axes are labelled, unless they are pictures, and the caption is a sentence."""
    caption = figure.get_supxlabel()
    assert len(caption) > 40
    assert caption.rstrip()[-1] in ".?"
    plots = [axis for axis in figure.axes if axis.axison and axis.get_label() != "<colorbar>"]
    assert pictures or plots
    assert all(axis.get_xlabel() for axis in plots if axis.get_subplotspec().is_last_row())
    assert all(axis.get_ylabel() for axis in plots if axis.get_subplotspec().is_first_col() and axis.get_yticks().size)
