"""The verdict of a run, on top of its page: what was delivered, why, and what to do next.

It is `verdict` in result.json: {"delivered": name, "in_words": sentence, "reasons": […], "warnings": […], "next": […],
"candidates": […]}; runs of earlier versions have `sentences` instead of `reasons`.
A candidate has `name`, `metrics` and `intervals` on the validation classes (as the rows of `results`), where there are
`folds` of classes the same in there, `dim`, `milliseconds_per_image`, `bytes_per_item` and `delivered`. Where the
network was chosen, `networks` has a row for each that was measured: `backbone`, `size`, `warp` (the whole photo, or its
centre), `readout`, `images` (how many, of train classes), `metrics` on them, the `difference` from the best on the same
images with its interval, `milliseconds_per_image` and `chosen`. Whatever is missing is left out.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lookalike.report.charts.chart import Axis, Chart, Series, around, columns
from lookalike.report.markup import Html, element, join
from lookalike.report.page.glossary import linked
from lookalike.report.page.tables import Cell, Number, sortable

METRICS = ("map@r", "recall@1")


def draw(verdict: Mapping[str, Any]) -> Html:
    if not verdict:
        return Html()
    delivered, reasons = verdict.get("delivered"), verdict.get("reasons", verdict.get("sentences")) or []
    return join(
        element("p", "Delivered: ", element("strong", linked(delivered))) if delivered else "",
        *(element("p", sentence) for sentence in reasons),
        _list("Warnings", "warnings", verdict.get("warnings") or []),
        _list("What would help next", "next", verdict.get("next") or []),
    )


def candidates(verdict: Mapping[str, Any]) -> Html:
    """Everything that was compared to choose what is delivered."""
    rows = verdict.get("candidates") or []
    return join(_table(rows) if rows else Html(), _networks(verdict.get("networks") or []))


def _list(title: str, kind: str, sentences: Sequence[str]) -> Html:
    if not sentences:
        return Html()
    return element(
        "div", element("h3", title), element("ul", *(element("li", _capital(each)) for each in sentences)), class_=kind
    )


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _table(rows: Sequence[Mapping[str, Any]]) -> Html:
    folds = any("folds" in row for row in rows)
    heads = ["candidate", *METRICS, *(f"{metric}, folds" for metric in METRICS if folds)]
    heads += ["dimensions", "ms per image", "bytes per item"]
    words = "Every candidate on the validation classes, with 95% intervals over classes; the best of them is delivered"
    if folds:
        words += ". Folds: all classes but the test classes, each judged by a model fitted to the others"
    return sortable("candidates", words, heads, [_cells(row, folds) for row in rows])


def networks_chart(verdict: Mapping[str, Any]) -> Chart | None:
    """Quality against time: every network at every size that was measured."""
    rows = verdict.get("networks") or []
    if len(rows) < 2:
        return None
    lines = list(dict.fromkeys(_name(row) for row in rows))
    series = [_line(number, name, rows) for number, name in enumerate(lines)]
    times, gaps = [x for line in series for x in line.x], [y for line in series for y in line.y]
    return Chart(
        "networks",
        "Networks and sizes",
        "Higher is better, farther left is quicker; measured on train classes.",
        Axis("milliseconds per image", *around(times)),
        Axis("map@r minus that of the best", *around(gaps, least=0.01)),
        tuple(series),
    )


def _name(row: Mapping[str, Any]) -> str:
    return f"{row['backbone']}, {_seen(row)}" if row.get("warp") else str(row["backbone"])


def _seen(row: Mapping[str, Any]) -> str:
    """What a network sees of a photo."""
    return "whole photo" if row.get("warp") else "its centre"


def _line(number: int, name: str, rows: Sequence[Mapping[str, Any]]) -> Series:
    own = sorted((row for row in rows if _name(row) == name), key=lambda row: row["size"])
    x, y = columns((row["milliseconds_per_image"], row["difference"][0]) for row in own)
    return Series(name, x, y, "dots", number, names=tuple(str(row["size"]) for row in own))


def _networks(rows: Sequence[Mapping[str, Any]]) -> Html:
    if not rows:
        return Html()
    heads = [
        "network",
        "pixels",
        "sees",
        "features",
        *METRICS,
        "map@r minus that of the best",
        "ms per image",
        "images",
    ]
    words = (
        "Networks and sizes on a sample of train classes, before anything was trained; those that did worse were left "
        "out of the next round, with more images. Differences are from the best on the same images, with 95% intervals"
    )
    return sortable("networks", words, heads, [_network(row) for row in rows])


def _network(row: Mapping[str, Any]) -> list[Cell]:
    name = element("strong", f"✓ {row['backbone']} (chosen)") if row.get("chosen") else str(row["backbone"])
    return [
        name,
        _number(row["size"], "{}"),
        _seen(row),
        str(row["readout"]),
        *_metrics(row),
        _difference(row["difference"]),
        _number(row["milliseconds_per_image"], "{:,.1f}"),
        _number(row["images"], "{:,}"),
    ]


def _difference(ends: Sequence[float]) -> Cell:
    middle, low, high = ends
    return Number(f"{middle:+.3f} [{low:+.3f}, {high:+.3f}]", middle)


def _cells(candidate: Mapping[str, Any], folds: bool) -> list[Cell]:
    name = linked(str(candidate.get("name", "")))
    title = element("strong", "✓ ", name, " (delivered)") if candidate.get("delivered") else name
    return [
        title,
        *_metrics(candidate),
        *(_metrics(candidate.get("folds") or {}) if folds else []),
        _number(candidate.get("dim"), "{:,}"),
        _number(candidate.get("milliseconds_per_image"), "{:,.2f}"),
        _number(candidate.get("bytes_per_item"), "{:,.0f}"),
    ]


def _metrics(judged: Mapping[str, Any]) -> list[Cell]:
    values, intervals = judged.get("metrics") or {}, judged.get("intervals") or {}
    return [_metric(values.get(metric), intervals.get(metric)) for metric in METRICS]


def _metric(value: Any, ends: Sequence[float] | None) -> Cell:
    if value is None:
        return Number("–", -1.0)
    span = f" [{ends[0]:.3f}, {ends[1]:.3f}]" if ends else ""
    return Number(f"{value:.3f}{span}", value)


def _number(value: Any, how: str) -> Cell:
    return Number("–", -1.0) if value is None else Number(how.format(value), value)
