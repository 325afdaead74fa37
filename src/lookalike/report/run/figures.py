"""The figures of a few numbers each: the results, recall@K, when to believe an answer, and the spectrum."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from lookalike.evaluation import Result
from lookalike.report.charts.chart import Axis, Chart, ReferenceLine, Series, around, columns
from lookalike.report.run.measures import KS

MAIN = ("recall@1", "map@r")
SMALLEST = 1e-6  # share of the spectrum that is drawn


def results_chart(results: Sequence[Mapping[str, Any]]) -> Chart:
    """How good is it, and against what? Every result with its interval, the model first."""
    series = [part for colour, metric in enumerate(MAIN) if (part := _series(results, metric, colour)) is not None]
    farthest = max((end for part in series for end in part.high), default=1.0)
    names = tuple(str(row.get("name", "")) for row in results)
    return Chart(
        "results",
        "How good, against what",
        "Farther right is better; where the whiskers (95% intervals) do not overlap, the difference is not chance.",
        Axis("value of the metric", 0.0, min(1.0, 1.1 * farthest) or 1.0),
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


def recall_chart(result: Result, results: Sequence[Mapping[str, Any]]) -> Chart:
    """If a person looks at the first K answers, how often is a right one among them? The model with its interval, and
    what is known of the baselines."""
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
        f"The higher on the left, the fewer answers a person must look at; the first answer is right for "
        f"{result['recall@1']:.3f} of the queries.",
        Axis("K, the number of answers looked at", 1.0, last, log=True),
        Axis("share of queries with a hit in K", 0.0, 1.0),
        (band, Series("this model", *columns(points)), *(line for line in lines if line.x)),
    )


def _baseline(row: Mapping[str, Any], colour: int, last: float) -> Series:
    recalls = {int(name[7:]): value for name, value in row.get("metrics", {}).items() if name.startswith("recall@")}
    points = [(float(k), recalls[k]) for k in sorted(recalls) if k <= last]
    return Series(str(row.get("name", "")), *columns(points), "line" if len(points) > 1 else "dots", colour)


def calibration_chart(calibration: Mapping[str, Any]) -> Chart | None:
    """When is an answer right? The share of right answers, and of answered queries, over a threshold on their chance,
    from what `lookalike.search` keeps of a calibration; None where there is none."""
    if not calibration:
        return None
    thresholds, right, answered = (tuple(map(float, column)) for column in zip(*calibration["curve"], strict=True))
    sure, maybe = calibration["sure"], calibration["maybe"]
    marks = [] if sure is None else [ReferenceLine(sure, "sure")]
    marks += [ReferenceLine(maybe, "maybe")] if maybe not in (sure, 0.0) else []
    judged = calibration.get("models") or calibration.get("weights")
    score = "chance that the label is right" if judged else "similarity of the best hit"
    return Chart(
        "calibration",
        "When to believe an answer",
        "Answers above a threshold: how many are right, and how many remain.",
        Axis(score, *around(thresholds, 1e-6)),
        Axis("share", 0.0, 1.0),
        (
            Series("right, of these answers", thresholds, right),
            Series("answered correctly, of all that could be", thresholds, answered, colour=1),
        ),
        tuple(marks),
    )


def spectrum_chart(values: Tensor, rho: float | None) -> Chart | None:
    """In how many directions does the embedding spread? (Roth et al., ICML 2020; [math F.7])."""
    if len(values) < 2 or float(values.sum()) <= 0:
        return None
    shares = (values / values.sum()).tolist()
    low = SMALLEST if min(shares) < SMALLEST else min(shares) * 0.8
    flatness = "" if rho is None else f"; rho is {rho:.3f}, where 0 is perfectly flat"
    points = [(float(rank), max(low, share)) for rank, share in enumerate(shares, 1)]
    return Chart(
        "spectrum",
        "Spectrum of the embeddings",
        f"Flatter uses more directions, which helps on unseen classes; a cliff means collapsed dimensions{flatness}.",
        Axis("rank of the singular value", 1.0, float(len(shares))),
        Axis("share of the sum", low, max(shares) * 1.25, log=True),
        (Series("singular values", *columns(points)),),
    )
