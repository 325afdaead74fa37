"""When is an answer right? The share of right answers, and of answered queries, over a threshold on their chance."""

from collections.abc import Mapping
from typing import Any

from lookalike.report.charts.chart import Axis, Chart, Mark, Series, around


def calibration_chart(calibration: Mapping[str, Any]) -> Chart | None:
    """From what `lookalike.search` keeps of a calibration; None where there is none."""
    if not calibration:
        return None
    thresholds, right, answered = (tuple(map(float, column)) for column in zip(*calibration["curve"], strict=True))
    sure, maybe = calibration["sure"], calibration["maybe"]
    marks = [] if sure is None else [Mark(sure, "sure")]
    marks += [Mark(maybe, "maybe")] if maybe != sure else []
    score = "chance that the best hit is right" if calibration.get("weights") else "similarity of the best hit"
    return Chart(
        "calibration", "When to believe an answer", "Answers from a threshold on: how many are right, how many remain.",
        Axis(score, *around(thresholds, 1e-6)), Axis("share", 0.0, 1.0, percent=True),
        (Series("right among them", thresholds, right),
         Series("answered rightly, of all that could be", thresholds, answered, colour=1)),
        tuple(marks),
    )  # fmt: skip
