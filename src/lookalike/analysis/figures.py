"""Figures for pages and notebooks: one look, a caption in every one, and files that do not change when drawn again."""

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from lookalike.files import cannot_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# the first eight after Okabe and Ito: colour-blind readers can tell them apart too
COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#5f5f5f"),
    *("#8c510a", "#b2df8a", "#000000", "#ffd92f"),
)
FAINT = "#e3e3e8"
LOOK: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.hashsalt": "lookalike",  # else the ids inside differ from drawing to drawing
}


def panels(rows: int, columns: int, size: tuple[float, float], caption: str, **sharing: Any) -> tuple["Figure", Any]:
    """A figure of rows × columns axes, always a grid, with one line below that says what to see in it.

    It does not belong to a window, so nothing has to be closed; a notebook shows it as the last value of a cell.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(LOOK):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, **sharing)
        figure.supxlabel(fill(caption, int(size[0] * 15)), fontsize=8, color="#444")
    return figure, axes


def plain(name: str) -> str:
    """A name from somebody's data as text: matplotlib would read what stands between two dollars as a formula.

    >>> print(plain("$5 bill"))
    \\$5 bill
    """
    return name.replace("$", r"\$")


def save(figure: "Figure", numbers: Mapping[str, Any], folder: Path, name: str) -> list[Path]:
    """Writes `figure` as NAME.svg and NAME.png and its `numbers` as NAME.json into `folder`; `name`: without a dot."""
    from matplotlib import rc_context

    paths = [folder / f"{name}.{kind}" for kind in ("svg", "png", "json")]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with rc_context(LOOK), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from font")  # a class name in a script without a font
            figure.savefig(paths[0], metadata={"Date": None})
            figure.savefig(paths[1], dpi=130, metadata={"Software": None}, pil_kwargs={"optimize": True})
        paths[2].write_text(json.dumps(numbers, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise cannot_write(folder, error) from None
    return paths
