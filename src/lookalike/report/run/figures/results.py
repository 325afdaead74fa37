"""How good is it, and against what? Every result with its interval, the model first."""

from collections.abc import Mapping, Sequence
from typing import Any

from lookalike.report.charts.chart import Axis, Chart, Series

MAIN = ("recall@1", "map@r")


def results_chart(results: Sequence[Mapping[str, Any]]) -> Chart:
    series = []
    for colour, metric in enumerate(MAIN):
        rows = [(place, row) for place, row in enumerate(results) if metric in row.get("metrics", {})]
        values = [float(row["metrics"][metric]) for _, row in rows]
        ends = [
            row.get("intervals", {}).get(metric) or (value, value) for (_, row), value in zip(rows, values, strict=True)
        ]
        if rows:
            shift = 0.13 * (2 * colour - 1)  # so that the two metrics of a row do not hide each other
            series.append(
                Series(
                    metric, tuple(values), tuple(place + shift for place, _ in rows), "intervals", colour,
                    tuple(float(low) for low, _ in ends), tuple(float(high) for _, high in ends),
                )
            )  # fmt: skip
    farthest = max((end for part in series for end in part.high), default=1.0)
    names = tuple(str(row.get("name", "")) for row in results)
    return Chart(
        "results",
        "How good, against what",
        "Farther right is better; where whiskers (95 % intervals) do not overlap, the difference is no accident.",
        Axis("value of the metric (%)", 0.0, min(1.0, 1.1 * farthest) or 1.0, percent=True),
        Axis("result (name)", -0.6, len(names) - 0.4, names=names),
        tuple(series),
        extra={"results": list(results)},
    )
