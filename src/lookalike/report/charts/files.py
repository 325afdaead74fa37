"""Every figure as files: SVG, its numbers as JSON, and PNG when asked for."""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lookalike.files import cannot_write
from lookalike.report.charts import layout, png, svg
from lookalike.report.charts.chart import Chart
from lookalike.report.charts.drawing import Drawing


def save_charts(charts: Iterable[Chart], folder: Path, as_png: bool = False) -> None:
    for chart in charts:
        save(layout.drawing(chart), chart.numbers(), folder / chart.name, as_png)


def save(drawing: Drawing, numbers: Any, path: Path, as_png: bool) -> None:
    """PATH.svg, PATH.json and, when asked for, PATH.png."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".svg").write_text(svg.standalone(drawing), encoding="utf-8")
        if as_png:
            png.save(drawing, path.with_suffix(".png"))
        else:  # what an earlier report left would show other numbers
            path.with_suffix(".png").unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(path, error) from None
    save_json(numbers, path.with_suffix(".json"))


def save_json(value: Any, path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(as_json(value) + "\n", encoding="utf-8")
    except OSError as error:
        raise cannot_write(path, error) from None


def as_json(value: Any) -> str:
    """JSON text with null for NaN and infinity, which JSON does not have.

    >>> as_json([1.0, float("nan")])
    '[\\n 1.0,\\n null\\n]'
    """
    return json.dumps(_finite(value), indent=1, ensure_ascii=False, default=str)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
