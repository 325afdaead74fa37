"""Every figure of the page as a file: SVG, PNG, and its numbers as JSON; what is no drawing as JSON alone."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lookalike.report.charts import raster, svg
from lookalike.report.run import confusions, strips, tiles
from lookalike.report.run.content import Content
from lookalike.report.run.pictures import Pixels


def export(content: Content, found: Mapping[int, Pixels], folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name, chart in content.charts.items():
        (folder / f"{name}.svg").write_text(svg.standalone(svg.draw(chart)), encoding="utf-8")
        raster.save(chart, folder / f"{name}.png")
        _save(folder / f"{name}.json", chart.numbers())
    _save(folder / "classes.json", content.classes)
    _save(folder / "categories.json", content.categories)
    for kind, title in strips.TITLES.items():
        chosen = [strip for strip in content.strips if strip.kind == kind]
        _tiles(folder / f"queries_{kind}", title, chosen, found)
    _tiles(folder / "confusions", "Most confused classes, side by side", content.confused, found)
    _save(folder / "shape.json", content.measured.shape)


def _tiles(
    path: Path, title: str, lines: Sequence[strips.Strip] | Sequence[confusions.Confused], found: Mapping[int, Pixels]
) -> None:
    """Rows of pictures, likewise."""
    shown = [line.tiles() for line in lines]
    path.with_suffix(".svg").write_text(svg.standalone(tiles.as_svg(title, shown, found)), encoding="utf-8")
    tiles.save_png(path.with_suffix(".png"), title, shown, found)
    _save(path.with_suffix(".json"), [line.numbers() for line in lines])


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
