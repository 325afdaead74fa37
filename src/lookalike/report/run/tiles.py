"""Small pictures with their class below them: on the page, and in rows as a drawing of their own."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from lookalike.report.charts.drawing import SOLID, Drawing, Pen, Pixels
from lookalike.report.charts.layout import clipped
from lookalike.report.markup import Html, element

SIDE, STEP, LINE, TOP = 64, 76, 104, 34
LETTERS = 9  # of a name under a picture
SIGNS = {"hit": "✓", "miss": "✕"}
Kind = Literal["query", "hit", "miss", "plain"]


class Tile(NamedTuple):
    row: int
    label: str
    kind: Kind
    words: str = ""  # what it shows, for those who cannot see it
    path: str = ""
    note: str = ""  # below the name
    gap: bool = False  # some space before it


def tile(shown: Tile, addresses: Mapping[int, str]) -> Html:
    """A picture with its class below it and its file in the tooltip; without a picture, the name alone."""
    if shown.row in addresses:
        picture = element("img", src=addresses[shown.row], alt=shown.words, width=64, height=64)
    else:
        picture = element("span", shown.label, class_="nameless", role="img", aria_label=shown.words)
    sign = SIGNS.get(shown.kind, "")
    mark = element("span", sign, class_="sign", aria_hidden="true") if sign else Html()
    note = element("small", shown.note) if shown.note else Html()
    caption = element("span", shown.label, note, class_="name", aria_hidden="true")
    title = f"{shown.words}\n{shown.path}" if shown.path else shown.words
    return element("span", picture, mark, caption, class_=f"tile {shown.kind}", title=title)


def drawing(title: str, lines: Sequence[Sequence[Tile]], pictures: Mapping[int, Pixels]) -> Drawing:
    """Rows of tiles."""
    width = max((_placed(line)[-1][0] + STEP for line in lines), default=0) + 8

    def paint(pen: Pen) -> None:
        pen.text(title, 8, 20)
        for number, line in enumerate(lines):
            for left, shown in _placed(line):
                _paint(pen, shown, left, TOP + LINE * number, pictures)

    return Drawing(width, TOP + LINE * len(lines) + 4, title, paint)


def _placed(line: Sequence[Tile]) -> list[tuple[int, Tile]]:
    """Every tile with its left edge."""
    placed, left = [], 8
    for shown in line:
        left += 20 if shown.gap else 0
        placed.append((left, shown))
        left += STEP
    return placed


def _paint(pen: Pen, shown: Tile, left: int, top: int, pictures: Mapping[int, Pixels]) -> None:
    if shown.row in pictures:
        pen.picture(pictures[shown.row], left, top, SIDE)
    right, bottom = left + SIDE, top + SIDE
    frame = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
    if shown.kind == "hit":
        pen.line(frame, "frame", 2)
    elif shown.kind == "miss":
        pen.line(frame, "frame", 1, (6, 4))
    else:
        pen.line(frame, f"{shown.kind} frame", None, SOLID)
    pen.text(f"{SIGNS.get(shown.kind, '')} {clipped(shown.label, LETTERS)}".strip(), left, bottom + 17)


def file_names(tiles: Sequence[Tile]) -> Html:
    """The files behind some tiles, folded away: to be copied where a tooltip cannot be reached."""
    rows = [
        element("li", element("code", shown.path, class_="path"), f" {shown.label}") for shown in tiles if shown.path
    ]
    return element("details", element("summary", "files"), element("ol", *rows), class_="files") if rows else Html()
