"""Rows of pictures as a file of their own: the queries and the confused classes as SVG and PNG."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lookalike.report.charts.raster import COLOURS
from lookalike.report.charts.svg import clipped
from lookalike.report.page.markup import Html, element, join
from lookalike.report.run.pictures import Pixels, data_address

SIDE, STEP, LINE, TOP = 64, 76, 104, 34
LETTERS = 9  # of a name under a picture
INKS = {"query": "#1b1f24", "hit": COLOURS[2], "miss": COLOURS[1], "plain": "#8a939e"}
SIGNS = {"hit": "✓", "miss": "✕"}


class Tile(NamedTuple):
    row: int
    label: str
    kind: str  # query, hit, miss or plain
    gap: bool = False  # some air before it


def as_svg(title: str, lines: Sequence[Sequence[Tile]], pictures: Mapping[int, Pixels]) -> Html:
    width, height = _size(lines)
    parts = [element("text", title, x=8, y=20)]
    for number, line in enumerate(lines):
        for left, tile in _placed(line):
            parts.append(_tile(tile, left, TOP + LINE * number, pictures))
    return element(
        "svg", *parts, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width} {height}", class_="chart", role="img",
        aria_label=title,
    )  # fmt: skip


def _size(lines: Sequence[Sequence[Tile]]) -> tuple[int, int]:
    return max((_placed(line)[-1][0] + STEP for line in lines), default=0) + 8, TOP + LINE * len(lines) + 4


def _placed(line: Sequence[Tile]) -> list[tuple[int, Tile]]:
    """Every tile with its left edge."""
    found, left = [], 8
    for tile in line:
        left += 20 if tile.gap else 0
        found.append((left, tile))
        left += STEP
    return found


def _tile(tile: Tile, left: int, top: int, pictures: Mapping[int, Pixels]) -> Html:
    shown = Html()
    if tile.row in pictures:
        shown = element("image", href=data_address(pictures[tile.row]), x=left, y=top, width=SIDE, height=SIDE)
    frame = element(
        "rect", x=left, y=top, width=SIDE, height=SIDE, fill="none", stroke=INKS[tile.kind], stroke_width=3,
        stroke_dasharray="6 4" if tile.kind == "miss" else None,
    )  # fmt: skip
    words = f"{SIGNS.get(tile.kind, '')} {clipped(tile.label, LETTERS)}".strip()
    return join(shown, frame, element("text", words, x=left, y=top + SIDE + 17))


def save_png(path: Path, title: str, lines: Sequence[Sequence[Tile]], pictures: Mapping[int, Pixels]) -> None:
    from matplotlib import get_data_path
    from PIL import Image, ImageDraw, ImageFont

    paper = Image.new("RGB", _size(lines), "white")
    pen, letters = (
        ImageDraw.Draw(paper),
        ImageFont.truetype(str(Path(get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")), 12),
    )
    pen.text((8, 8), title, INKS["query"], letters)
    for number, line in enumerate(lines):
        for left, tile in _placed(line):
            top = TOP + LINE * number
            if tile.row in pictures:
                paper.paste(Image.fromarray(pictures[tile.row]).resize((SIDE, SIDE)), (left, top))
            pen.rectangle((left, top, left + SIDE - 1, top + SIDE - 1), outline=INKS[tile.kind], width=3)
            if tile.kind == "miss":  # a shape besides the colour
                pen.line((left, top, left + 14, top + 14), INKS["miss"], 3)
                pen.line((left, top + 14, left + 14, top), INKS["miss"], 3)
            pen.text((left, top + SIDE + 4), clipped(tile.label, LETTERS), INKS["query"], letters)
    paper.save(path)
