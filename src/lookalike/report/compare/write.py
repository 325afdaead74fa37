"""From folders of runs to compare.html and figures/."""

import json
from pathlib import Path

from lookalike.errors import UserError
from lookalike.report.charts import raster, svg
from lookalike.report.charts.chart import Chart
from lookalike.report.compare.charts import charts
from lookalike.report.compare.content import Comparison
from lookalike.report.compare.sections import draw
from lookalike.report.run.export import finite


def write(content: Comparison, folder: Path | str) -> Path:
    """Write FOLDER/compare.html, compare.json and every figure as SVG, PNG and numbers; say where the page is."""
    drawn, folder = charts(content), Path(folder)
    target = folder / "compare.html"
    try:
        save_charts(drawn, folder / "figures")
        numbers = json.dumps(finite(content.as_json()), indent=1, ensure_ascii=False, default=str)
        (folder / "compare.json").write_text(numbers + "\n", encoding="utf-8")
        target.write_text(draw(content, drawn), encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write to {folder} ({error.strerror}): give another --out") from None
    return target


def save_charts(drawn: list[Chart], folder: Path) -> None:
    """Every figure as a file of each kind."""
    folder.mkdir(parents=True, exist_ok=True)
    for chart in drawn:
        (folder / f"{chart.name}.svg").write_text(svg.standalone(svg.draw(chart)), encoding="utf-8")
        raster.save(chart, folder / f"{chart.name}.png")
        numbers = json.dumps(finite(chart.numbers()), indent=1, ensure_ascii=False, default=str)
        (folder / f"{chart.name}.json").write_text(numbers + "\n", encoding="utf-8")
