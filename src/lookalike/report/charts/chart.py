"""A figure as data: what is drawn, on which axes, and what to see in it. `svg` and `raster` draw it.

There is no figure without axis labels, units and a caption: they are not optional here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Style = Literal["line", "band", "dots", "area", "intervals"]


@dataclass(frozen=True)
class Axis:
    """From `low` to `high`; `percent` shows 0 … 1 as 0 … 100 %. `names` are the positions 0, 1, … of a list."""

    label: str  # with its unit
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
    """Points in order. `low` and `high` are the edges of a band and the horizontal whiskers of intervals."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    style: Style = "line"
    colour: int = 0
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    faint: bool = False


@dataclass(frozen=True)
class Mark:
    """A straight line across the figure at `at` of an axis, with a word beside it."""

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
    marks: tuple[Mark, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)  # numbers told with the figure but not drawn

    def numbers(self) -> dict[str, Any]:
        """What the figure shows, for other programs."""
        series = [
            {key: value for key, value in part.__dict__.items() if key not in ("colour", "faint", "style") and value}
            for part in self.series
        ]
        found: dict[str, Any] = {"title": self.title, "caption": self.caption, "x": self.x.label, "y": self.y.label}
        if self.marks:
            found["marks"] = [mark.__dict__ for mark in self.marks]
        return found | {"series": series} | self.extra


def around(values: Sequence[float], least: float = 0.0, margin: float = 0.05) -> tuple[float, float]:
    """Ends of an axis that shows all values with some air; at least `least` wide.

    >>> around([1.0, 2.0], margin=0.5)
    (0.5, 2.5)
    """
    low, high = min(values), max(values)
    air = max(margin * (high - low), (least - (high - low)) / 2, 1e-9)
    return low - air, high + air
