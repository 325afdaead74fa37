"""The figures of a comparison: results with intervals, differences, learning curves, cost against quality."""

from collections.abc import Sequence
from typing import Any

from lookalike.report.charts.chart import Axis, Chart, ReferenceLine, Series, around, columns
from lookalike.report.compare.content import MethodComparison, MethodGap, MethodRow
from lookalike.report.compare.methods import Method
from lookalike.report.run.figures import results_chart
from lookalike.report.run.training_figures import STEPS, column

COLOURED = 4  # lines that a reader can tell apart; the others stand behind them
COSTS = {
    "seconds": ("training time per run (minutes)", 60.0),
    "steps": ("training steps per run", 1.0),
    "memory": ("peak memory (GB)", 1e9),
}


def charts(content: MethodComparison) -> list[Chart]:
    """Those for which there are numbers."""
    metric = content.metrics[-1]
    possible = [
        _results(content),
        *(_gaps([gap for gap in content.gaps if gap.metric == name], name) for name in content.metrics),
        _curves(content, "validation", metric),
        _curves(content, "step", "loss"),
        *(_cost(content.rows, name, metric) for name in COSTS),
    ]
    return [chart for chart in possible if chart is not None]


def _results(content: MethodComparison) -> Chart:
    """Every method with its interval; over seeds where there are several, else over queries."""
    rows: list[dict[str, Any]] = []
    for row in content.rows:
        intervals = {name: spread.over_seeds or spread.over_queries for name, spread in row.metrics.items()}
        rows.append(
            {
                "name": row.name,
                "metrics": {name: spread.mean for name, spread in row.metrics.items()},
                "intervals": {name: _within(ends) for name, ends in intervals.items() if ends is not None},
            }
        )
    return results_chart(rows)


def _within(ends: tuple[float, float]) -> tuple[float, float]:
    """The interval of two seeds may be wider than what is possible."""
    return max(0.0, ends[0]), min(1.0, ends[1])


def _gaps(gaps: Sequence[MethodGap], metric: str) -> Chart | None:
    """Paired differences from the baseline, with the wider of their two intervals."""
    if not gaps:
        return None
    spans = [widest(gap) for gap in gaps]
    low, high = around([0.0, *(end for span in spans for end in span)], least=0.01)
    series = []
    for colour, (clear, name) in enumerate(((True, "larger than the noise"), (False, "within the noise"))):
        places = [place for place, gap in enumerate(gaps) if gap.spread.clear == clear]
        if places:
            means, lows, highs = zip(*((gaps[place].spread.mean, *spans[place]) for place in places), strict=True)
            series.append(Series(name, means, tuple(map(float, places)), "intervals", colour, lows, highs))
    return Chart(
        f"difference_{metric.replace('@', '_at_')}",
        f"{metric}: difference from {gaps[0].against}",
        "Right of 0 is better; where the whiskers (95% intervals of paired differences) cross 0, it may be chance.",
        Axis(f"difference in {metric} (percentage points)", low, high, percent=True),
        Axis("", -0.6, len(gaps) - 0.4, names=tuple(gap.name for gap in gaps)),
        tuple(series),
        (ReferenceLine(0.0, ""),),
    )


def widest(gap: MethodGap) -> tuple[float, float]:
    """The wider interval there is: over seeds or over queries."""
    spans = [span for span in (gap.spread.over_seeds, gap.spread.over_queries) if span is not None]
    return max(spans, key=lambda span: span[1] - span[0]) if spans else (gap.spread.mean, gap.spread.mean)


def _curves(content: MethodComparison, event: str, name: str) -> Chart | None:
    """One line per run; the best methods in colour, with their names."""
    ranked = sorted(content.rows, key=lambda row: -row.metrics[content.metrics[-1]].mean)
    coloured = [row.name for row in ranked[:COLOURED]]
    series = []
    for method in sorted(content.collection.methods, key=lambda method: method.name in coloured):
        series += _lines(method, event, name, coloured)
    if not any(len(part.x) > 1 for part in series):
        return None
    low, high = around([y for part in series for y in part.y], least=0.02)
    rest = f"; the best {COLOURED} methods are in colour" if len(content.rows) > COLOURED else ""
    steps = Axis(STEPS, 0.0, max(1.0, *(x for part in series for x in part.x)))
    if event == "step":
        return Chart(
            "curves_loss",
            "Training loss",
            f"How fast each loss falls; different losses have different scales{rest}.",
            steps,
            Axis("loss", low, high),
            tuple(series),
        )
    return Chart(
        "curves_validation",
        f"Learning curves: {name} on validation classes",
        f"Which method is ahead, and from which step; one line per run{rest}.",
        steps,
        Axis(f"validation {name} (%)", max(0.0, low), min(1.0, high), percent=True),
        tuple(series),
    )


def _lines(method: Method, event: str, name: str, coloured: list[str]) -> list[Series]:
    """The curve of every run of a method; the first carries its name."""
    faint = method.name not in coloured
    colour = 0 if faint else coloured.index(method.name)
    curves = [column([entry for entry in run.log if entry.get("event") == event], name) for run in method.runs]
    return [
        Series("" if place else method.name, *columns(curve), colour=colour, faint=faint)
        for place, curve in enumerate(curve for curve in curves if curve)
    ]


def _cost(rows: Sequence[MethodRow], cost: str, metric: str) -> Chart | None:
    known = [row for row in rows if row.cost.get(cost) and metric in row.metrics]
    if len({row.cost[cost] for row in known}) < 2:
        return None  # equal costs say nothing
    label, unit = COSTS[cost]
    points = {row.name: (row.cost[cost] / unit, row.metrics[metric].mean) for row in known}
    best = [
        name
        for name, (price, value) in points.items()
        if not any(other <= price and more > value for other, more in points.values())
    ]
    series = []
    for colour, (title, names) in enumerate(
        (("no cheaper one is better", best), ("others", [name for name in points if name not in best]))
    ):
        if names:
            dots = columns([points[name] for name in names])
            series.append(Series(title, *dots, "dots", colour, names=tuple(names)))
    prices, values = columns(list(points.values()))
    low, high = around(values, least=0.02, margin=0.15)
    cheapest, dearest = around(prices, least=1e-6, margin=0.1)
    return Chart(
        f"cost_{cost}",
        f"{metric} against {label.split(' (')[0]}",
        "Up and to the left is better; a method that no cheaper one beats is worth its cost.",
        Axis(label, max(0.0, cheapest), dearest),
        Axis(f"{metric} (%)", max(0.0, low), min(1.0, high), percent=True),
        tuple(series),
        extra={"names": list(points), "cost": list(prices), "value": list(values)},
    )
