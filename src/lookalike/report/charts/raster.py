"""The same chart as PNG, by matplotlib: for slides, mails and programs that do not read SVG."""

import warnings
from pathlib import Path
from typing import Any

from lookalike.report.charts.chart import Chart, Series
from lookalike.report.charts.ticks import ticks

COLOURS = ("#0b5fa5", "#b3541e", "#00735c", "#7a3e9d")
SHAPES = ("o", "s", "D", "^")
DASHES: tuple[Any, ...] = ("-", (0, (5, 3)), (0, (1.5, 2)), (0, (6, 2, 1.5, 2)))
DOTS_PER_INCH = 160


def save(chart: Chart, path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a name in a script that matplotlib's font lacks is drawn as boxes
        figure = Figure(figsize=(5.8, 3.8))
        FigureCanvasAgg(figure)
        # a fixed frame: measuring all labels first, as matplotlib would, takes twice as long
        widest = max(len(word) for _, word in ticks(chart.y))
        left = min(0.4, 0.09 + 0.014 * widest)
        axes = figure.add_axes((left, 0.15, 0.965 - left, 0.75))
        for series in chart.series:
            _draw(axes, series)
        _furnish(axes, chart)
        figure.savefig(path, dpi=DOTS_PER_INCH)


def _draw(axes: Any, series: Series) -> None:
    colour = COLOURS[series.colour % len(COLOURS)]
    name = series.name if series.name and not series.faint else None
    if series.style in ("dots", "intervals"):
        shape = SHAPES[series.colour % len(SHAPES)]
        axes.plot(series.x, series.y, shape, color=colour, label=name, markersize=5, linestyle="none")
        if series.low:
            axes.hlines(series.y, series.low, series.high, color=colour)
        return
    if series.style == "band":
        axes.fill_between(series.x, series.low, series.high, color=colour, alpha=0.18, linewidth=0)
        return
    dash = DASHES[series.colour % len(DASHES)]
    axes.plot(series.x, series.y, color=colour, linestyle=dash, label=name, alpha=0.3 if series.faint else 1)
    if series.style == "area":
        axes.fill_between(series.x, series.y, color=colour, alpha=0.18, linewidth=0)


def _furnish(axes: Any, chart: Chart) -> None:
    """Axes, marks, legend and title."""
    axes.set(title=chart.title, xlabel=chart.x.label, ylabel=chart.y.label)
    for axis, which in ((chart.x, "x"), (chart.y, "y")):
        if axis.log:
            axes.set(**{f"{which}scale": "log"})
        places = ticks(axis)
        axes.set(**{f"{which}lim": (axis.low, axis.high)})
        axes.set(
            **{f"{which}ticks": [place for place, _ in places], f"{which}ticklabels": [word for _, word in places]}
        )
        axes.tick_params(axis=which, which="minor", length=0)
    if chart.y.names:
        axes.invert_yaxis()
    for mark in chart.marks:
        line = axes.axvline if mark.axis == "x" else axes.axhline
        line(mark.at, color="#555", linewidth=1, linestyle=(0, (4, 3)), label=mark.text)
    axes.grid(alpha=0.3)
    if len(axes.get_legend_handles_labels()[1]) > 1 or chart.marks:
        axes.legend(fontsize=8, loc="best")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
