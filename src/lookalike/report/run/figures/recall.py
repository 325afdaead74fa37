"""recall@K: if a person looks at the first K answers, how often is a right one among them?"""

from collections.abc import Mapping, Sequence
from typing import Any

from lookalike.evaluation import Result
from lookalike.report.charts.chart import Axis, Chart, Series

SHOWN_K = (1, 2, 4, 8, 10, 16, 32, 100)


def recall_chart(result: Result, results: Sequence[Mapping[str, Any]]) -> Chart:
    """The curve of the model with its interval, and the points known of the baselines."""
    curve = result.curves["cmc"]
    ends = [result.interval(f"recall@{k}") for k in SHOWN_K]
    last = float(min(100, max(2, result.facts["gallery"] - 1)))
    model = Series("this model", *_until(last, curve["k"].tolist(), curve["recall"].tolist()))
    kept = [place for place, k in enumerate(SHOWN_K) if k <= last]
    band = Series(
        "", tuple(float(SHOWN_K[place]) for place in kept), tuple(result[f"recall@{SHOWN_K[place]}"] for place in kept),
        low=tuple(ends[place][0] for place in kept), high=tuple(ends[place][1] for place in kept), style="band",
    )  # fmt: skip
    others = [row for row in results if row.get("role") == "baseline"][:3]
    lines = [_baseline(row, number, last) for number, row in enumerate(others, 1)]
    return Chart(
        "recall",
        "Recall at K",
        f"The higher at the left, the fewer answers a person must look at: {100 * result['recall@1']:.1f} % of queries "
        "have a right first answer.",
        Axis("K: answers looked at (number)", 1.0, last, log=True),
        Axis("queries with a hit in K (%)", 0.0, 1.0, percent=True),
        (band, model, *(line for line in lines if line.x)),
    )


def _until(last: float, ks: Sequence[float], values: Sequence[float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    kept = [(float(k), float(value)) for k, value in zip(ks, values, strict=True) if k <= last]
    return tuple(k for k, _ in kept), tuple(value for _, value in kept)


def _baseline(row: Mapping[str, Any], colour: int, last: float) -> Series:
    known = {int(name[7:]): value for name, value in row.get("metrics", {}).items() if name.startswith("recall@")}
    ks = sorted(known)
    points = _until(last, ks, [known[k] for k in ks])
    return Series(str(row.get("name", "")), *points, "line" if len(points[0]) > 1 else "dots", colour)
