"""Every figure of the page as a file: SVG, PNG, and its numbers as JSON; what is no drawing as JSON alone."""

import json
import math
from pathlib import Path
from typing import Any

from lookalike.report import raster, svg
from lookalike.report.content import Content


def export(content: Content, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name, chart in content.charts.items():
        (folder / f"{name}.svg").write_text(svg.standalone(svg.draw(chart)), encoding="utf-8")
        raster.save(chart, folder / f"{name}.png")
        _save(folder / f"{name}.json", chart.numbers())
    _save(folder / "classes.json", content.classes)
    _save(folder / "categories.json", content.categories)
    _save(folder / "queries.json", [strip.numbers() for strip in content.strips])
    _save(folder / "confusions.json", [pair.numbers() for pair in content.confused])
    _save(folder / "shape.json", content.measured.shape)


def _save(path: Path, value: Any) -> None:
    path.write_text(json.dumps(finite(value), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def finite(value: Any) -> Any:
    """The same with null for NaN and infinity, which JSON does not have.

    >>> finite({"a": [1.0, float("nan")]})
    {'a': [1.0, None]}
    """
    if isinstance(value, dict):
        return {key: finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
