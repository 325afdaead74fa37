"""The page of a comparison: results, differences, every pair, learning curves, cost, settings, published figures."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from lookalike.report.charts.chart import Chart
from lookalike.report.compare.content import COSTS, Comparison, Gap
from lookalike.report.compare.published import PROTOCOLS
from lookalike.report.compare.text import figure, number, shown_cost, span, titled
from lookalike.report.page.markup import Html, element, join
from lookalike.report.page.page import Section, figures, note, page
from lookalike.report.run.facts import definition_list, written

MOST = 12  # methods of which every pair is shown
Cell = str | tuple[str, float]  # a word, or a number as written and as sorted


def draw(content: Comparison, drawn: Sequence[Chart]) -> str:
    """The whole page as text."""
    named = {chart.name: chart for chart in drawn}
    differences = [chart for name, chart in named.items() if name.startswith("difference_")]
    curves = [chart for name, chart in named.items() if name.startswith("curves_")]
    costs = [chart for name, chart in named.items() if name.startswith("cost_")]
    sections = [
        Section("results", "How good are they?", join(_lead(content), figures(named["results"]), _results(content))),
        Section("differences", "Larger than the noise?", join(_gaps(content), figures(*differences))),
        Section("pairs", "Every pair", _pairs(content)),
        Section("curves", "Learning curves", figures(*curves) if curves else Html()),
        Section("cost", "Cost against quality", join(figures(*costs), _costs(content)) if costs else Html()),
        Section("settings", "What differs", _settings(content)),
        Section("published", "Beside published figures", _published(content)),
    ]
    subtitle = f"{len(content.rows)} methods · {datetime.now():%-d %B %Y}"
    return page(content.collection.title, subtitle, [part for part in sections if part.body], Html())


def table(name: str, caption: str, heads: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Html:
    """A table that sorts by a click on a heading."""
    numbers = [any(isinstance(row[place], tuple) for row in rows) for place in range(len(heads))]
    top = [
        element("th", element("button", head, type="button"), scope="col", aria_sort="none",
                class_="number" if number else None)
        for head, number in zip(heads, numbers, strict=True)
    ]  # fmt: skip
    body = [element("tr", *(_cell(cell) for cell in row)) for row in rows]
    drawn = element(
        "table", element("caption", caption), element("thead", element("tr", *top)), element("tbody", *body),
        class_=f"sortable {name}",
    )  # fmt: skip
    return element("div", drawn, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _cell(cell: Cell) -> Html:
    if isinstance(cell, str):
        return element("td", cell)
    return element("td", cell[0], class_="number", data_value=f"{cell[1]:.6g}")


def _lead(content: Comparison) -> Html:
    clear = [gap for gap in content.gaps if gap.metric == content.metrics[-1] and gap.spread.clear]
    best = max(content.rows, key=lambda row: row.metrics[content.metrics[-1]].mean)
    words = (
        f"{best.name} has the highest {content.metrics[-1]}. {len(clear)} of {len(content.rows) - 1} methods differ "
        f"from {content.collection.baseline.name} by more than the noise."
    )
    return element("p", words, class_="lead")


def _results(content: Comparison) -> Html:
    rows = []
    for row in content.rows:
        cells: list[Cell] = [titled(row), (str(len(row.seeds)), float(len(row.seeds)))]
        for metric in content.metrics:
            found = row.metrics[metric]
            ends = span(metric, found.over_seeds or found.over_queries)
            cells.append((f"{figure(metric, found)} {ends}", found.mean))
        rows.append(cells)
    heads = ["method", "seeds", *(f"{metric} [95 %]" for metric in content.metrics)]
    words = "Brackets: over seeds where there are several, else over queries. A click on a heading sorts."
    return table("by-method", words, heads, rows)


def _gaps(content: Comparison) -> Html:
    if not content.gaps:
        return note("There is only one method: give another run to compare it with.")
    heads = ["method", "metric", "difference", "over seeds", "over queries", "verdict"]
    words = (
        f"Against {content.collection.baseline.name}, in pairs of equal seeds and equal queries; clear only where "
        "every interval there is leaves out 0. Over seeds: another training; over queries: other test images."
    )
    return table("differences", words, heads, [_gap_cells(gap) for gap in content.gaps])


def _gap_cells(gap: Gap) -> list[Cell]:
    spans = [span(gap.metric, ends, "+") or "–" for ends in (gap.spread.over_seeds, gap.spread.over_queries)]
    return [gap.name, gap.metric, (number(gap.metric, gap.spread.mean, "+"), gap.spread.mean), *spans, gap.verdict]


def _pairs(content: Comparison) -> Html:
    names = [row.name for row in content.rows]
    if len(names) < 3 or len(names) > MOST:
        return Html()
    found = {(gap.name, gap.against): gap for gap in content.pairs}
    heads = [element("th", "is above →", scope="col"), *(element("th", name, scope="col") for name in names)]
    body = [element("tr", element("th", one, scope="row"), *(_pair(found, one, other) for other in names))
            for one in names]  # fmt: skip
    chance = f" Of {len(content.pairs)} pairs of equal methods about one in twenty looks clear by chance."
    caption = element("caption", f"Row minus column in {content.metrics[-1]}; * larger than the noise.{chance}")
    drawn = element("table", caption, element("thead", element("tr", *heads)), element("tbody", *body), class_="matrix")
    return element("div", drawn, class_="scroll", tabindex="0", role="region", aria_label="Every pair")


def _pair(found: dict[tuple[str, str], Gap], one: str, other: str) -> Html:
    gap = found.get((one, other)) or found.get((other, one))
    if gap is None:
        return element("td", "", class_="number")
    sign = 1 if gap.name == one else -1
    star = " *" if gap.spread.clear else ""
    return element("td", number(gap.metric, sign * gap.spread.mean, "+") + star, class_="number")


def _costs(content: Comparison) -> Html:
    known = [name for name in COSTS if any(name in row.cost for row in content.rows)]
    rows: list[list[Cell]] = []
    for row in content.rows:
        costs: list[Cell] = [(shown_cost(name, row.cost[name]), row.cost[name]) if name in row.cost else ("–", 0.0)
                             for name in known]  # fmt: skip
        rows.append([row.name, *costs])
    return table("costs", "Means over the runs of a method", ["method", *(COSTS[name] for name in known)], rows)


def _settings(content: Comparison) -> Html:
    differing = content.collection.differing()
    if not differing:
        return Html()
    rows: list[list[Cell]] = [
        [method.name, *("–" if values[place] is None else written(values[place]) for values in differing.values())]
        for place, method in enumerate(content.collection.methods)
    ]
    return table("settings", "The settings of the recipes in which they differ", ["method", *differing], rows)


def _published(content: Comparison) -> Html:
    if not content.published:
        return Html()
    metrics = list(dict.fromkeys([*content.metrics, "recall@1", "map@r"]))
    heads = ["row", "source", "backbone", "dimensions", "protocol", *metrics, "note"]
    rows: list[list[Cell]] = []
    for place, row in enumerate(content.rows):
        settings = content.collection.methods[place].settings
        facts = [str(settings.get("model.backbone", "–")), _number(settings.get("model.dim"))]
        values = {name: each.mean for name, each in row.metrics.items()}
        protocol = str(settings.get("protocol.name", "–"))
        rows.append([titled(row), "yours", *facts, protocol, *_values(values, metrics), f"{len(row.seeds)} seeds"])
    for printed in content.published:
        facts = [printed.backbone, _number(printed.dim)]
        cells = _values(printed.metrics, metrics)
        rows.append([printed.method, printed.source, *facts, printed.protocol, *cells, printed.note])
    told = {row.paper: f"{row.title}; document {row.document}" for row in content.published}
    words = (
        "Rows called published stand in papers; nothing here measured them. Compare only what has the same data, "
        "backbone, dimensions and protocol: a figure whose test images chose the epoch is higher than a fair one."
    )
    protocols = {name: PROTOCOLS[name] for name in dict.fromkeys(row.protocol for row in content.published)}
    names = [element("h3", "Documents"), definition_list(told.items())]
    names += [element("h3", "Their protocols"), definition_list(protocols.items())]
    return join(note(words), table("published", f"{content.published[0].dataset}, in %", heads, rows), *names)


def _values(found: dict[str, float], metrics: Sequence[str]) -> list[Cell]:
    return [(number(name, found[name]), found[name]) if name in found else ("–", -1.0) for name in metrics]


def _number(value: Any) -> Cell:
    return (f"{value:,}", float(value)) if isinstance(value, int) else ("–", 0.0)
