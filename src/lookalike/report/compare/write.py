"""From a comparison to compare.html, compare.json and figures/."""

from pathlib import Path

from lookalike.files import write_text
from lookalike.report.charts.files import save_charts, save_json
from lookalike.report.compare.charts import charts
from lookalike.report.compare.content import MethodComparison
from lookalike.report.compare.sections import draw


def write(content: MethodComparison, folder: Path | str, png: bool = False) -> Path:
    """Write compare.html, compare.json and every figure as SVG and numbers into `folder`, with `png` also as PNG.

    `content` is what `compare` gives. Returns where the page is.
    """
    figures, folder = charts(content), Path(folder)
    save_charts(figures, folder / "figures", png)
    save_json(content.as_json(), folder / "compare.json")
    page = folder / "compare.html"
    write_text(page, draw(content, figures))
    return page
