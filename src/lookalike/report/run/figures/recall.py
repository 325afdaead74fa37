"""recall@K: if a person looks at the first K answers, how often is a right one among them?"""

from collections.abc import Mapping, Sequence
from typing import Any

from lookalike.evaluation import Result
from lookalike.report.charts.chart import Axis, Chart, Series, columns
from lookalike.report.run.measures import KS


def recall_chart(result: Result, results: Sequence[Mapping[str, Any]]) -> Chart:
    """The curve of the model with its interval, and what is known of the baselines."""
    last = float(min(KS[-1], max(2, result.facts["gallery"] - 1)))
    points = [(float(k), result[f"recall@{k}"]) for k in KS if k <= last]
    ends = [result.interval(f"recall@{k}") for k in KS if k <= last]
    low, high = columns(ends)
    band = Series("", *columns(points), "band", low=low, high=high)
    baselines = [row for row in results if row.get("role") == "baseline"][:3]
    lines = [_baseline(row, number, last) for number, row in enumerate(baselines, 1)]
    return Chart(
        "recall",
        "Recall at K",
        f"The higher at the left, the fewer answers a person must look at: {100 * result['recall@1']:.1f} % of queries "
        "have a right first answer.",
        Axis("K, the number of answers looked at", 1.0, last, log=True),
        Axis("queries with a hit in K (%)", 0.0, 1.0, percent=True),
        (band, Series("this model", *columns(points)), *(line for line in lines if line.x)),
    )


def _baseline(row: Mapping[str, Any], colour: int, last: float) -> Series:
    recalls = {int(name[7:]): value for name, value in row.get("metrics", {}).items() if name.startswith("recall@")}
    points = [(float(k), recalls[k]) for k in sorted(recalls) if k <= last]
    return Series(str(row.get("name", "")), *columns(points), "line" if len(points) > 1 else "dots", colour)
