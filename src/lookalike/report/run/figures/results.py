"""How good is it, and against what? Every result with its interval, the model first."""

from collections.abc import Mapping, Sequence
from typing import Any

from lookalike.report.charts.chart import Axis, Chart, Series, columns

MAIN = ("recall@1", "map@r")


def results_chart(results: Sequence[Mapping[str, Any]]) -> Chart:
    series = [part for colour, metric in enumerate(MAIN) if (part := _series(results, metric, colour)) is not None]
    farthest = max((end for part in series for end in part.high), default=1.0)
    names = tuple(str(row.get("name", "")) for row in results)
    return Chart(
        "results",
        "How good, against what",
        "Farther right is better; where the whiskers (95 % intervals) do not overlap, the difference is not chance.",
        Axis("value of the metric (%)", 0.0, min(1.0, 1.1 * farthest) or 1.0, percent=True),
        Axis("", -0.6, len(names) - 0.4, names=names),
        tuple(series),
        extra={"results": list(results)},
    )


def _series(results: Sequence[Mapping[str, Any]], metric: str, colour: int) -> Series | None:
    shift = 0.13 * (2 * colour - 1)  # so that the two metrics of a row do not hide each other
    points, ends = [], []
    for place, row in enumerate(results):
        if metric in row.get("metrics", {}):
            value = float(row["metrics"][metric])
            low, high = row.get("intervals", {}).get(metric) or (value, value)
            points.append((value, place + shift))
            ends.append((float(low), float(high)))
    return Series(metric, *columns(points), "intervals", colour, *columns(ends)) if points else None
