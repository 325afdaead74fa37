"""How good is it, against what baseline, with intervals: the numbers at the top of the page."""

from collections.abc import Mapping, Sequence
from typing import Any

from lookalike.evaluation import Result
from lookalike.report.markup import Html, element, join
from lookalike.report.page.glossary import link, linked
from lookalike.report.page.tables import scrolling
from lookalike.report.run.figures import MAIN
from lookalike.report.run.record import RunRecord

MEANINGS = {
    "recall@1": "the share of queries whose nearest neighbour is of their own class",
    "map@r": "mean average precision among the first R, R = images of the class",
}


def results_of(run: RunRecord, result: Result) -> list[dict[str, Any]]:
    """What the run measured, the model first; where it says nothing, what the embeddings say."""
    own = {
        "name": "this model",
        "role": "model",
        "metrics": {name: result[name] for name in (*MAIN, "r_precision", "mrr", "recall@10")},
        "intervals": {name: list(result.interval(name)) for name in MAIN},
    }
    rows = [dict(row) for row in run.result.get("results") or []]
    if not any(row.get("role") == "model" for row in rows):
        rows.insert(0, own)
    return sorted(rows, key=lambda row: row.get("role") != "model")


def headline(run: RunRecord, result: Result, rows: Sequence[Mapping[str, Any]]) -> Html:
    """One sentence for people, what it rests on, the two numbers, and what they gain over the baselines."""
    facts = result.facts
    among = ", each searched among the others" if facts["leave_one_out"] else f", searched among {facts['gallery']:,}"
    excluded = facts["excluded"]
    lonely = f"; {excluded:,} without any other image of their class are not counted" if excluded else ""
    images = f"{facts['queries']:,} images of {facts['classes']:,} classes never seen in training"
    words = f"Measured on {images}{among}{lonely}."
    differences = run.result.get("differences") or []
    cards = [_card(name, rows[0], differences) for name in MAIN if name in rows[0]["metrics"]]
    plain = run.part("verdict").get("in_words")
    lead = element("p", plain, class_="lead") if plain else Html()
    return join(lead, element("p", words), element("div", *cards, class_="cards"))


def _card(metric: str, row: Mapping[str, Any], differences: Sequence[Mapping[str, Any]]) -> Html:
    ends = row.get("intervals", {}).get(metric)
    span = f"95% interval {ends[0]:.3f} to {ends[1]:.3f}" if ends else ""
    gains = [_gain(difference) for difference in differences if difference.get("metric") == metric]
    return element(
        "div",
        element("h3", link(metric)),
        element("p", f"{row['metrics'][metric]:.3f}", class_="figure"),
        element("p", span, class_="interval"),
        element("p", MEANINGS[metric], class_="meaning"),
        element("ul", *gains) if gains else Html(),
        class_="card",
    )


def _gain(difference: Mapping[str, Any]) -> Html:
    mean = difference["mean"]
    low, high = difference.get("interval") or (mean, mean)
    doubt = "" if low > 0 or high < 0 else ", which may be chance"
    words = f" against {difference['against']} ({_signed(low)} to {_signed(high)}{doubt})"
    return element("li", element("strong", _signed(mean)), words)


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")


def results_table(rows: Sequence[Mapping[str, Any]]) -> Html:
    """Every metric of every result."""
    names = list(dict.fromkeys(name for row in rows for name in row.get("metrics", {})))
    heads = [element("th", "metric", scope="col")]
    heads += [element("th", linked(row.get("name", "")), scope="col", class_="number") for row in rows]
    lines = [(element("th", linked(name), scope="row"), *(_value(row, name) for row in rows)) for name in names]
    body = [element("tr", *cells) for cells in lines]
    return scrolling(None, "Every metric; brackets are 95% intervals", heads, body)


def _value(row: Mapping[str, Any], name: str) -> Html:
    value, ends = row.get("metrics", {}).get(name), row.get("intervals", {}).get(name)
    if not isinstance(value, int | float):
        return element("td", "–", class_="number")
    shown = f"{value:.4f}" + (f" [{ends[0]:.4f}, {ends[1]:.4f}]" if ends else "")
    return element("td", shown, class_="number")
