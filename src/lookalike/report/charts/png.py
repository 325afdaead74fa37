"""A drawing as PNG, for slides, mails and programs that do not read SVG. Made only on request."""

import math
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from lookalike.report.charts.drawing import RADIUS, SOLID, Anchor, Dash, Drawing, Pixels, Points, corners

SCALE = 2  # pixels of the file per pixel of the drawing
FINE = 2 * SCALE  # drawn at this scale and reduced, which smooths the edges
LETTERS = 12  # height of the letters
SERIES = ("#0b5fa5", "#b3541e", "#00735c", "#7a3e9d")  # as in chart.css, light
INK, SOFT = "#1b1f24", "#545d68"
LINES = {
    "grid": ("#e3e7ec", 1.0),
    "axis": ("#8a939e", 1.0),
    "mark": (SOFT, 1.2),
    "query frame": (INK, 3.0),
    "plain frame": ("#8a939e", 3.0),
}
WIDTHS = {"path": 2.0, "path faint": 1.0, "whisker": 2.0, "frame": 3.0}
FAINT, BAND = 0x59, 0x29  # opacity


def save(drawing: Drawing, path: Path) -> None:
    from PIL import Image

    size = round(drawing.width), round(drawing.height)
    paper = Image.new("RGB", (size[0] * FINE, size[1] * FINE), "white")
    drawing.paint(PngPen(paper))
    paper.resize((size[0] * SCALE, size[1] * SCALE), Image.Resampling.LANCZOS).save(path)


class PngPen:
    def __init__(self, paper: Any) -> None:
        from PIL import ImageDraw

        self.paper, self.pen = paper, ImageDraw.Draw(paper, "RGBA")

    def line(self, points: Points, kind: str, colour: int | None = None, dash: Dash = SOLID) -> None:
        if colour is None:
            ink, width = LINES[kind]
        else:
            ink, width = SERIES[colour % len(SERIES)], WIDTHS[kind]
        ink += f"{FAINT:02x}" if "faint" in kind else ""
        for stroke in dashed(_fine(points), tuple(FINE * length for length in dash)):
            self.pen.line(stroke, ink, round(width * FINE), joint="curve")

    def area(self, points: Points, colour: int) -> None:
        self.pen.polygon(_fine(points), f"{SERIES[colour % len(SERIES)]}{BAND:02x}")

    def dot(self, x: float, y: float, colour: int, size: float = 1.0, name: str = "") -> None:  # noqa: ARG002
        ink, shape = SERIES[colour % len(SERIES)], corners(x, y, colour, size)
        if shape:
            self.pen.polygon(_fine(shape), ink, "white")
        else:
            reach = size * RADIUS
            self.pen.ellipse(_fine([(x - reach, y - reach), (x + reach, y + reach)]), ink, "white", FINE // 2)

    def text(
        self, words: str, x: float, y: float, anchor: Anchor = "start", kind: str = "", upwards: bool = False
    ) -> None:
        if upwards:
            self._upwards(words, x, y)
            return
        halo = {"fill": INK, "stroke_width": 2 * FINE, "stroke_fill": "white"} if kind == "halo" else {"fill": SOFT}
        where = {"start": "ls", "middle": "ms", "end": "rs"}[anchor]
        self.pen.text((x * FINE, y * FINE), words, font=_font(), anchor=where, **halo)

    def _upwards(self, words: str, x: float, y: float) -> None:
        from PIL import Image, ImageDraw

        wide, high = round(_font().getlength(words)) + FINE, LETTERS * FINE
        mask = Image.new("L", (wide, 2 * high), 0)
        ImageDraw.Draw(mask).text((0, high), words, 255, _font(), anchor="ls")
        turned = mask.rotate(90, expand=True)
        self.paper.paste(SOFT, (round(x * FINE) - high, round(y * FINE) - wide // 2), turned)

    def picture(self, pixels: Pixels, x: float, y: float, side: float) -> None:
        from PIL import Image

        large = Image.fromarray(pixels).resize((round(side * FINE), round(side * FINE)))
        self.paper.paste(large, (round(x * FINE), round(y * FINE)))


@cache
def _font() -> Any:
    from matplotlib import get_data_path
    from PIL import ImageFont

    return ImageFont.truetype(str(Path(get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")), LETTERS * FINE)


def _fine(points: Points) -> list[tuple[float, float]]:
    return [(x * FINE, y * FINE) for x, y in points]


def dashed(points: Points, dash: Dash) -> Iterator[list[tuple[float, float]]]:
    """The strokes of a dashed line; a whole line is one stroke.

    >>> list(dashed([(0.0, 0.0), (10.0, 0.0)], (4, 2)))
    [[(0.0, 0.0), (4.0, 0.0)], [(6.0, 0.0), (10.0, 0.0)]]
    """
    if not dash:
        yield list(points)
        return
    stroke, piece, left = [points[0]], 0, dash[0]
    for (x, y), (to_x, to_y) in pairwise(points):
        length = gone = math.hypot(to_x - x, to_y - y)
        while gone > left:
            gone -= left
            share = 1 - gone / length
            stroke.append((x + share * (to_x - x), y + share * (to_y - y)))
            if piece % 2 == 0:
                yield stroke
            stroke, piece = [stroke[-1]], piece + 1
            left = dash[piece % len(dash)]
        left -= gone
        stroke.append((to_x, to_y))
    if piece % 2 == 0 and len(stroke) > 1:
        yield stroke
