"""From a comparison to its page, section by section, and to compare.json and figures/."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lookalike.files import write_text
from lookalike.report.charts.chart import Chart
from lookalike.report.charts.files import save_charts, save_json
from lookalike.report.compare.charts import charts
from lookalike.report.compare.content import COSTS, MethodComparison, MethodGap
from lookalike.report.compare.published import PROTOCOLS
from lookalike.report.compare.text import figure, number, shown_cost, span, titled
from lookalike.report.markup import Html, element, join
from lookalike.report.page import glossary
from lookalike.report.page.page import Section, figures, note, page, today
from lookalike.report.page.tables import Cell, Number, facts, scrolling, sortable, written

MOST = 12  # methods of which every pair is shown


def draw(content: MethodComparison, charts: Sequence[Chart]) -> str:
    """The whole page as text."""

    def group(name: str) -> Html:
        return figures(*(chart for chart in charts if chart.name.startswith(name)))

    costs = group("cost_")
    sections = [
        Section("results", "How good are they?", join(_lead(content), group("results"), _results(content))),
        Section("differences", "Larger than the noise?", join(_gaps(content), group("difference_"))),
        Section("pairs", "Every pair", _pairs(content)),
        Section("curves", "Learning curves", group("curves_")),
        Section("cost", "Cost and quality", join(costs, _costs(content)) if costs else Html()),
        Section("settings", "What differs", _settings(content)),
        Section("published", "Beside published figures", _published(content)),
        Section("glossary", "Glossary", glossary.section()),
    ]
    return page(content.collection.title, f"{len(content.rows)} methods · {today()}", sections)


def _lead(content: MethodComparison) -> Html:
    clear = [gap for gap in content.gaps if gap.metric == content.metrics[-1] and gap.spread.clear]
    best = max(content.rows, key=lambda row: row.metrics[content.metrics[-1]].mean)
    words = (
        f"{best.name} has the highest {content.metrics[-1]}. {len(clear)} of {len(content.rows) - 1} methods differ "
        f"from {content.collection.baseline.name} by more than the noise."
    )
    return element("p", words, class_="lead")


def _results(content: MethodComparison) -> Html:
    rows = []
    for row in content.rows:
        cells: list[Cell] = [titled(row), Number(str(len(row.seeds)), len(row.seeds))]
        for metric in content.metrics:
            spread = row.metrics[metric]
            ends = span(metric, spread.over_seeds or spread.over_queries)
            cells.append(Number(f"{figure(metric, spread)} {ends}", spread.mean))
        rows.append(cells)
    heads = ["method", "seeds", *(f"{metric} [95%]" for metric in content.metrics)]
    words = (
        "In percent, as in papers; brackets: over seeds, or over queries where there is one. Click a heading to sort."
    )
    return sortable("by-method", words, heads, rows)


def _gaps(content: MethodComparison) -> Html:
    if not content.gaps:
        return note("There is only one method: give another run to compare it with.")
    heads = ["method", "metric", "difference", "over seeds", "over queries", "verdict"]
    words = (
        f"Against {content.collection.baseline.name}, paired by seed and by query; a difference is clear only if every "
        "interval excludes 0. Over seeds: would another training change it? Over queries: would other test images?"
    )
    return sortable("differences", words, heads, [_gap_cells(gap) for gap in content.gaps])


def _gap_cells(gap: MethodGap) -> list[Cell]:
    spans = [span(gap.metric, ends, "+") or "–" for ends in (gap.spread.over_seeds, gap.spread.over_queries)]
    mean = Number(number(gap.metric, gap.spread.mean, "+"), gap.spread.mean)
    return [gap.name, gap.metric, mean, *spans, gap.verdict]


def _pairs(content: MethodComparison) -> Html:
    names = [row.name for row in content.rows]
    if len(names) < 3 or len(names) > MOST:
        return Html()
    gaps = {(gap.name, gap.against): gap for gap in content.pairs}
    heads = [
        element("th", "is above →", scope="col"),
        *(element("th", name, scope="col", class_="number") for name in names),
    ]
    rows = [
        element("tr", element("th", one, scope="row"), *(_pair(gaps, one, other) for other in names)) for one in names
    ]
    caption = (
        f"Row minus column in {content.metrics[-1]}; * larger than the noise. Of {len(content.pairs)} pairs of equal "
        "methods about one in twenty would look clear by chance."
    )
    return scrolling("matrix", caption, heads, rows)


def _pair(gaps: dict[tuple[str, str], MethodGap], one: str, other: str) -> Html:
    gap = gaps.get((one, other)) or gaps.get((other, one))
    if gap is None:
        return element("td", "", class_="number")
    sign = 1 if gap.name == one else -1
    star = " *" if gap.spread.clear else ""
    return element("td", number(gap.metric, sign * gap.spread.mean, "+") + star, class_="number")


def _costs(content: MethodComparison) -> Html:
    known = [name for name in COSTS if any(name in row.cost for row in content.rows)]
    rows: list[list[Cell]] = [
        [row.name, *(Number(shown_cost(name, row.cost.get(name)), row.cost.get(name, 0.0)) for name in known)]
        for row in content.rows
    ]
    return sortable("costs", "Means over the runs of a method", ["method", *(COSTS[name] for name in known)], rows)


def _settings(content: MethodComparison) -> Html:
    differing = content.collection.differing()
    if not differing:
        return Html()
    rows: list[list[Cell]] = [
        [method.name, *("–" if values[place] is None else written(values[place]) for values in differing.values())]
        for place, method in enumerate(content.collection.methods)
    ]
    return sortable("settings", "The settings in which the recipes differ", ["method", *differing], rows)


def _published(content: MethodComparison) -> Html:
    if not content.published:
        return Html()
    words = (
        "Rows marked “published” are from papers; nothing here measured them. Compare only rows with the same data, "
        "backbone, dimensions and protocol: a figure whose epoch was chosen on test images is higher than a fair one."
    )
    metrics = list(dict.fromkeys([*content.metrics, "recall@1", "map@r"]))
    heads = ["row", "source", "backbone", "dimensions", "protocol", *metrics, "note"]
    rows = [*_own_rows(content, metrics), *_published_rows(content, metrics)]
    papers = {row.paper: row.title for row in content.published}
    protocols = {name: PROTOCOLS[name] for name in dict.fromkeys(row.protocol for row in content.published)}
    return join(
        note(words),
        sortable("published", f"{content.published[0].dataset}, in %", heads, rows),
        join(element("h3", "Papers"), facts(papers.items())),
        join(element("h3", "Their protocols"), facts(protocols.items())),
    )


def _own_rows(content: MethodComparison, metrics: Sequence[str]) -> list[list[Cell]]:
    rows: list[list[Cell]] = []
    for row, method in zip(content.rows, content.collection.methods, strict=True):
        backbone, dim = str(method.settings.get("model.backbone", "–")), _count(method.settings.get("model.dim"))
        protocol = str(method.settings.get("protocol.name", "–"))
        values = _values({name: spread.mean for name, spread in row.metrics.items()}, metrics)
        rows.append([titled(row), "yours", backbone, dim, protocol, *values, f"{len(row.seeds)} seeds"])
    return rows


def _published_rows(content: MethodComparison, metrics: Sequence[str]) -> list[list[Cell]]:
    return [
        [row.method, row.source, row.backbone, _count(row.dim), row.protocol, *_values(row.metrics, metrics), row.note]
        for row in content.published
    ]


def _values(values: dict[str, float], metrics: Sequence[str]) -> list[Cell]:
    return [
        Number(number(name, values[name]), values[name]) if name in values else Number("–", -1.0) for name in metrics
    ]


def _count(value: Any) -> Cell:
    return Number(f"{value:,}", value) if isinstance(value, int) else Number("–", 0.0)


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
