"""How training went: loss, validation, learning rate and speed over steps, from the log."""

import math
from collections.abc import Sequence
from typing import Any

from lookalike.report.charts.chart import Axis, Chart, ReferenceLine, Series, around, columns
from lookalike.report.run.record import RunRecord

POINTS = 300  # of a curve; longer logs are averaged
WINDOW = 0.04  # of the run, over which the loss is smoothed
STEPS = "training step"
Column = list[tuple[float, float]]


def training_charts(run: RunRecord) -> list[Chart]:
    """Those of the four for which the log has numbers."""
    steps, checks = run.log.of("step"), run.log.of("validation")
    marks = _best(run)
    charts = [
        _loss(column(steps, "loss"), marks),
        _validation(checks, marks),
        _level(
            column(steps, "lr"),
            "learning_rate",
            "Learning rate",
            "learning rate",
            "The schedule as it was run; compare its bends with those of the loss.",
        ),
        _level(
            column(steps, "images_per_second"),
            "speed",
            "Speed",
            "images per second",
            "Should be flat; dips mean a busy machine or slow reading of images.",
        ),
    ]
    return [chart for chart in charts if chart is not None]


def column(events: Sequence[dict[str, Any]], name: str) -> Column:
    """(step, value) of the events that have a finite value, averaged down to a few hundred."""
    points = [
        (float(event["step"]), float(event[name]))
        for event in events
        if isinstance(event.get(name), int | float) and math.isfinite(event[name]) and "step" in event
    ]
    size = max(1, math.ceil(len(points) / POINTS))
    groups = [points[start : start + size] for start in range(0, len(points), size)]
    return [(sum(x for x, _ in group) / len(group), sum(y for _, y in group) / len(group)) for group in groups]


def _best(run: RunRecord) -> tuple[ReferenceLine, ...]:
    ends = [event["best_step"] for event in run.log.of("end") if isinstance(event.get("best_step"), int | float)]
    best = ends[-1] if ends else run.part("training").get("best_step")
    return (ReferenceLine(float(best), f"best at step {best:,.0f}"),) if isinstance(best, int | float) else ()


def _steps(points: Column, marks: Sequence[ReferenceLine] = ()) -> Axis:
    last = max([x for x, _ in points] + [mark.at for mark in marks])
    return Axis(STEPS, 0.0, max(1.0, last))


def _smooth(points: Column) -> Column:
    """A running mean over a small part of the run."""
    reach = max(1, round(WINDOW * len(points) / 2))
    values = [y for _, y in points]
    spans = [values[max(0, place - reach) : place + reach + 1] for place in range(len(points))]
    return [(x, sum(span) / len(span)) for (x, _), span in zip(points, spans, strict=True)]


def _loss(points: Column, marks: tuple[ReferenceLine, ...]) -> Chart | None:
    if len(points) < 2:
        return None
    raw = Series("each step", *columns(points), faint=True)
    smooth = Series("running mean", *columns(_smooth(points)))
    return Chart(
        "loss",
        "Training loss",
        "Should fall and level off; a rise or a jump means the learning rate is too high.",
        _steps(points, marks),
        Axis("loss", *around([y for _, y in points])),
        (raw, smooth),
        marks,
    )


def _validation(checks: Sequence[dict[str, Any]], marks: tuple[ReferenceLine, ...]) -> Chart | None:
    curves = {name: column(checks, name) for name in ("recall@1", "map@r")}
    series = [
        Series(name, *columns(points), colour=place) for place, (name, points) in enumerate(curves.items()) if points
    ]
    if not series:
        return None
    points = [point for curve in curves.values() for point in curve]
    low, high = around([y for _, y in points], least=0.02, margin=0.14)
    if any(check.get("on") == "test" for check in checks):
        on, title = "test", "Test during training (optimistic: the best step is chosen on it)"
        caption = "The highest of these points is what select = test_max reports; a fair run never sees them."
    else:
        on, title = "validation", "Validation, on classes kept out of training"
        caption = "Should rise and level off; a fall after the best step is overfitting, which the saved model avoids."
    return Chart(
        "validation",
        title,
        caption,
        _steps(points, marks),
        Axis(f"{on} metric", max(0.0, low), min(1.0, high)),
        tuple(series),
        marks,
    )


def _level(points: Column, name: str, title: str, label: str, caption: str) -> Chart | None:
    """A quantity over steps, from 0."""
    if len(points) < 2:
        return None
    axis = Axis(label, 0.0, 1.05 * max(y for _, y in points) or 1.0)
    return Chart(name, title, caption, _steps(points), axis, (Series(title.lower(), *columns(points)),))
