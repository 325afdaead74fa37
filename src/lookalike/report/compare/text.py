"""A comparison on a terminal: one table per metric, and what the differences mean."""

from lookalike.evaluation.statistics.seeds import Interval, Spread
from lookalike.evaluation.table import NOT_SHARES, aligned
from lookalike.report.compare.content import COSTS, MethodComparison, MethodRow
from lookalike.report.compare.published import best_of_each


def as_text(content: MethodComparison) -> str:
    """The `content` that `compare` gives, as tables for a terminal."""
    base = content.collection.baseline.name
    lines = [f"{content.collection.title}: {len(content.rows)} methods, compared with {base}"]
    for metric in content.metrics:
        heads = [metric, "mean ± std", "95% interval", f"− {base}", "over seeds", "over queries", ""]
        lines += ["", *aligned([heads, *(_line(content, row, metric) for row in content.rows)])]
    heads = ["cost per run", "seeds", *COSTS.values()]
    lines += ["", *aligned([heads, *(_cost(row) for row in content.rows)])]
    if any(row.optimistic for row in content.rows):
        lines += ["", "optimistic: the weights were chosen on the test images (protocol.select = test_max)"]
    return "\n".join(lines + _published(content))


def number(metric: str, value: float, sign: str = "") -> str:
    """In percent where the metric is a share."""
    return (f"{value:{sign}.4f}" if metric in NOT_SHARES else f"{100 * value:{sign}.2f}").replace("-", "−")


def span(metric: str, ends: Interval | None, sign: str = "") -> str:
    return "" if ends is None else f"[{number(metric, ends[0], sign)}, {number(metric, ends[1], sign)}]"


def figure(metric: str, spread: Spread) -> str:
    return number(metric, spread.mean) + ("" if spread.std is None else f" ± {number(metric, spread.std)}")


def titled(row: MethodRow) -> str:
    return row.name + (" (optimistic)" if row.optimistic else "")


def _line(content: MethodComparison, row: MethodRow, metric: str) -> list[str]:
    spread = row.metrics[metric]
    cells = [titled(row), figure(metric, spread), span(metric, spread.over_seeds or spread.over_queries)]
    gap = next((gap for gap in content.gaps if (gap.name, gap.metric) == (row.name, metric)), None)
    if gap is None:
        return [*cells, "", "", "", ""]
    spans = [span(metric, gap.spread.over_seeds, "+"), span(metric, gap.spread.over_queries, "+")]
    return [*cells, number(metric, gap.spread.mean, "+"), *spans, gap.verdict]


def shown_cost(name: str, value: float | None) -> str:
    """Steps as a number, time in minutes, memory in GB; a dash where it is not known."""
    if value is None:
        return "–"
    return {"steps": f"{value:,.0f}", "seconds": f"{value / 60:.1f}", "memory": f"{value / 1e9:.2f}"}[name]


def _cost(row: MethodRow) -> list[str]:
    costs = [shown_cost(name, row.cost.get(name)) for name in COSTS]
    return [row.name, str(len(row.seeds)), *costs]


def _published(content: MethodComparison) -> list[str]:
    if not content.published:
        return []
    rows = [["published, not measured here", "backbone", "protocol", "dim", *content.metrics]]
    for row in best_of_each(list(content.published)):
        values = [number(name, row.metrics[name]) if name in row.metrics else "" for name in content.metrics]
        rows.append(
            [f"{row.method} ({row.paper}, {row.table})", row.backbone, row.protocol, str(row.dim or ""), *values]
        )
    more = f"the best of each paper, protocol and backbone; the page has all {len(content.published)}"
    return ["", *aligned(rows), more]
