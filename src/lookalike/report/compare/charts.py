"""The figures of a comparison: results with intervals, differences, learning curves overlaid, cost against quality."""

from collections.abc import Sequence
from typing import Any

from lookalike.report.charts.chart import Axis, Chart, Mark, Series, around
from lookalike.report.compare.content import Comparison, Gap, Row
from lookalike.report.run.figures.results import results_chart
from lookalike.report.run.figures.training import column
from lookalike.runs import Method

COLOURED = 4  # lines that a reader can tell apart; the others stand behind them
COSTS = {"seconds": ("training time per run (minutes)", 60.0), "steps": ("training steps per run (number)", 1.0),
         "memory": ("peak memory (GB)", 1e9)}  # fmt: skip


def charts(content: Comparison) -> list[Chart]:
    """Those for which there are numbers."""
    metric = content.metrics[-1]
    found: list[Chart | None] = [_results(content)]
    found += [_gaps([gap for gap in content.gaps if gap.metric == name], name) for name in content.metrics]
    found += [_curves(content, "validation", metric), _curves(content, "step", "loss")]
    found += [_cost(content.rows, name, metric) for name in COSTS]
    return [chart for chart in found if chart is not None]


def _results(content: Comparison) -> Chart:
    """Every method with its interval; over seeds where there are several, else over queries."""
    rows: list[dict[str, Any]] = []
    for row in content.rows:
        intervals = {name: each.over_seeds or each.over_queries for name, each in row.metrics.items()}
        rows.append({
            "name": row.name, "metrics": {name: each.mean for name, each in row.metrics.items()},
            "intervals": {name: _within(span) for name, span in intervals.items() if span is not None},
        })  # fmt: skip
    return results_chart(rows)


def _within(span: tuple[float, float]) -> tuple[float, float]:
    """Two seeds may have an interval wider than all that is possible."""
    return max(0.0, span[0]), min(1.0, span[1])


def _gaps(gaps: Sequence[Gap], metric: str) -> Chart | None:
    """Paired differences from the baseline, with the wider of their two intervals."""
    if not gaps:
        return None
    spans = [widest(gap) for gap in gaps]
    low, high = around([0.0, *(end for span in spans for end in span)], least=0.01)
    places = range(len(gaps))
    series = []
    for colour, (clear, name) in enumerate(((True, "larger than the noise"), (False, "within the noise"))):
        chosen = [place for place in places if gaps[place].spread.clear == clear]
        if chosen:
            series.append(Series(
                name, tuple(gaps[place].spread.mean for place in chosen), tuple(float(place) for place in chosen),
                "intervals", colour, tuple(spans[place][0] for place in chosen),
                tuple(spans[place][1] for place in chosen),
            ))  # fmt: skip
    return Chart(
        f"difference_{metric.replace('@', '_at_')}", f"{metric}: difference from {gaps[0].against}",
        "Right of 0 is better; whiskers (95 % intervals of paired differences) that cross 0 may be chance.",
        Axis(f"difference in {metric} (percentage points)", low, high, percent=True),
        Axis("method (name)", -0.6, len(gaps) - 0.4, names=tuple(gap.name for gap in gaps)),
        tuple(series), (Mark(0.0, ""),),
    )  # fmt: skip


def widest(gap: Gap) -> tuple[float, float]:
    """The wider interval there is: over seeds or over queries."""
    spans = [span for span in (gap.spread.over_seeds, gap.spread.over_queries) if span is not None]
    return max(spans, key=lambda span: span[1] - span[0]) if spans else (gap.spread.mean, gap.spread.mean)


def _curves(content: Comparison, event: str, name: str) -> Chart | None:
    """One line per run; the best methods in colour, with their names."""
    ranked = sorted(content.rows, key=lambda row: -row.metrics[content.metrics[-1]].mean)
    coloured = [row.name for row in ranked[:COLOURED]]
    series = []
    for method in sorted(content.collection.methods, key=lambda method: method.name in coloured):
        series += _lines(method, event, name, coloured)
    if not any(len(part.x) > 1 for part in series):
        return None
    values = [y for part in series for y in part.y]
    last = max(x for part in series for x in part.x)
    low, high = around(values, least=0.02)
    rest = f"; the best {COLOURED} methods are in colour" if len(content.rows) > COLOURED else ""
    steps = Axis("training step (number)", 0.0, max(1.0, last))
    if event == "step":
        return Chart(
            "curves_loss", "Training loss", f"How fast each loss falls; different losses have different scales{rest}.",
            steps, Axis("loss (no unit)", low, high), tuple(series),
        )  # fmt: skip
    return Chart(
        "curves_validation", f"Learning curves: {name} on validation classes",
        f"Who is ahead, and from which step on; one line per run{rest}.",
        steps, Axis(f"validation {name} (%)", max(0.0, low), min(1.0, high), percent=True), tuple(series),
    )  # fmt: skip


def _lines(method: Method, event: str, name: str, coloured: list[str]) -> list[Series]:
    found, named = [], False
    for run in method.runs:
        points = column([entry for entry in run.log if entry.get("event") == event], name)
        if points:
            faint = method.name not in coloured
            colour = 0 if faint else coloured.index(method.name)
            xs, ys = tuple(x for x, _ in points), tuple(y for _, y in points)
            found.append(Series("" if named else method.name, xs, ys, colour=colour, faint=faint))
            named = True
    return found


def _cost(rows: Sequence[Row], cost: str, metric: str) -> Chart | None:
    known = [row for row in rows if row.cost.get(cost) and metric in row.metrics]
    if len({row.cost[cost] for row in known}) < 2:
        return None  # what costs all the same says nothing
    label, unit = COSTS[cost]
    costs, values = [row.cost[cost] / unit for row in known], [row.metrics[metric].mean for row in known]
    best = [row for row, price, value in zip(known, costs, values, strict=True)
            if not any(other <= price and more > value for other, more in zip(costs, values, strict=True))]  # fmt: skip
    series = []
    for colour, (name, chosen) in enumerate((("no cheaper one is better", best),
                                             ("others", [row for row in known if row not in best]))):  # fmt: skip
        if chosen:
            xs, ys = [row.cost[cost] / unit for row in chosen], [row.metrics[metric].mean for row in chosen]
            series.append(Series(name, tuple(xs), tuple(ys), "dots", colour))
    low, high = around(values, least=0.02, margin=0.15)
    names = ", ".join(row.name for row in sorted(best, key=lambda row: row.cost[cost])[:6])
    return Chart(
        f"cost_{cost}", f"{metric} against {label.split(' (')[0]}",
        f"Up and to the left is better; from cheap to dear: {names}.",
        Axis(label, *around(costs, least=1e-6, margin=0.1)),
        Axis(f"{metric} (%)", max(0.0, low), min(1.0, high), percent=True), tuple(series),
        extra={"names": [row.name for row in known], "cost": costs, "value": values},
    )  # fmt: skip
