"""A figure as data: the series, the axes, and what to see in it. `layout` draws it.

Every figure has axes, a title and a caption: none of them is optional here.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Style = Literal["line", "band", "dots", "area", "intervals"]


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`; `percent` shows 0 … 1 as 0 … 100%. `names` stand at the positions 0, 1, … of a list."""

    label: str  # with the unit, if there is one; a list of names needs none
    low: float
    high: float
    log: bool = False
    percent: bool = False
    names: tuple[str, ...] = ()

    def share(self, value: float) -> float:
        """Where a value lies between the ends, 0 … 1."""
        low, high, value = (math.log10(v) if self.log else v for v in (self.low, self.high, value))
        return (value - low) / (high - low)


@dataclass(frozen=True)
class Series:
    """Points in order. `low` and `high` are the edges of a band or the horizontal whiskers of intervals."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    style: Style = "line"
    colour: int = 0
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    faint: bool = False
    names: tuple[str, ...] = ()  # of the points, written beside them where there is room


@dataclass(frozen=True)
class ReferenceLine:
    """A straight line across the figure at position `at` of an axis, with a word beside it."""

    at: float
    text: str
    axis: Literal["x", "y"] = "x"


@dataclass(frozen=True)
class Chart:
    name: str  # of its files
    title: str
    caption: str  # one line: what to see in it
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    marks: tuple[ReferenceLine, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)  # numbers saved with the figure but not drawn

    def numbers(self) -> dict[str, Any]:
        """What the figure shows, for other programs."""
        series = [
            {key: value for key, value in part.__dict__.items() if key not in ("colour", "faint", "style") and value}
            for part in self.series
        ]
        heading = {"title": self.title, "caption": self.caption, "x": self.x.label, "y": self.y.label}
        marks = {"marks": [mark.__dict__ for mark in self.marks]} if self.marks else {}
        return heading | marks | {"series": series} | self.extra


def around(values: Sequence[float], least: float = 0.0, margin: float = 0.05) -> tuple[float, float]:
    """Ends of an axis that shows all values with a margin on both sides, at least `least` apart.

    >>> around([1.0, 2.0], margin=0.5)
    (0.5, 2.5)
    """
    low, high = min(values), max(values)
    space = max(margin * (high - low), (least - (high - low)) / 2, 1e-9)
    return low - space, high + space


def columns(points: Iterable[tuple[float, float]]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Points as the x and y of a series."""
    points = list(points)
    return tuple(x for x, _ in points), tuple(y for _, y in points)
