"""What can be drawn, and with what: a drawing is painted by any pen, so that SVG and PNG show the same."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]  # height × width × 3
Points = Sequence[tuple[float, float]]
Dash = tuple[float, ...]  # lengths of strokes and gaps; empty for a whole line
Anchor = Literal["start", "middle", "end"]
SOLID: Dash = ()
RADIUS = 4.5  # of a round dot


@runtime_checkable
class Pen(Protocol):
    """Draws in pixels from the top left corner. `kind` is a class of chart.css, `colour` a series colour."""

    def line(self, points: Points, kind: str, colour: int | None = None, dash: Dash = SOLID) -> None: ...

    def area(self, points: Points, colour: int) -> None: ...

    def dot(self, x: float, y: float, colour: int, size: float = 1.0, name: str = "") -> None: ...

    def text(
        self, words: str, x: float, y: float, anchor: Anchor = "start", kind: str = "", upwards: bool = False
    ) -> None: ...

    def picture(self, pixels: Pixels, x: float, y: float, side: float) -> None: ...


class Drawing(NamedTuple):
    width: float
    height: float
    title: str
    paint: Callable[[Pen], None]


def corners(x: float, y: float, colour: int, size: float) -> Points:
    """The shape of a dot: one per colour, so that nobody needs colours to tell series apart. The first is a circle."""
    shapes = (
        (),
        ((-4, -4), (4, -4), (4, 4), (-4, 4)),
        ((0, -5.5), (5.5, 0), (0, 5.5), (-5.5, 0)),
        ((0, -5), (5, 4), (-5, 4)),
    )
    return [(x + size * dx, y + size * dy) for dx, dy in shapes[colour % len(shapes)]]
