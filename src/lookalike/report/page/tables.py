"""Tables that sort by a click on a heading, lists of facts, and how values are written in them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from lookalike.report.markup import Html, element, join
from lookalike.report.page import glossary


class Number(NamedTuple):
    """A cell that sorts by `value`; `bar` (0 … 1) also shows it as a length."""

    words: str
    value: float
    bar: float | None = None


Cell = str | Html | Number


def sortable(name: str, caption: str, heads: Sequence[str], rows: Sequence[Sequence[Cell]], rising: str = "") -> Html:
    """A table of class `name`, whose headings lead to the glossary that the page must have.

    `rising` is the heading by which the rows are in rising order already.
    """
    numeric = [any(isinstance(row[place], Number) for row in rows) for place in range(len(heads))]
    top = [
        element(
            "th",
            element("button", head, type="button"),
            glossary.mark(head),
            scope="col",
            class_="number" if number else None,
            aria_sort="ascending" if head == rising else "none",
        )
        for head, number in zip(heads, numeric, strict=True)
    ]
    body = [element("tr", *(_cell(cell) for cell in row)) for row in rows]
    return scrolling(f"sortable {name}", caption, top, body)


def scrolling(kind: str | None, caption: str, heads: Sequence[Html], rows: Sequence[Html]) -> Html:
    """A table in a frame of limited height, which the keyboard can scroll."""
    table = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *heads)),
        element("tbody", *rows),
        class_=kind,
    )
    return element("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _cell(cell: Cell) -> Html:
    if not isinstance(cell, Number):
        return element("td", cell)
    bar = (
        Html()
        if cell.bar is None
        else element("span", class_="bar", style=f"--share:{cell.bar:.3f}", aria_hidden="true")
    )
    return element("td", join(bar, cell.words), class_="number", data_value=f"{cell.value:.6g}")


def fraction(value: float) -> Number:
    """A share as a cell with a bar."""
    return Number(f"{value:.3f}", value, value)


def file_name(path: str) -> Html:
    """A path that one click selects as a whole, to be copied."""
    return element("code", path, class_="path") if path else Html()


def facts(pairs: Iterable[tuple[str, Any]]) -> Html:
    """Names and values, without those that are empty."""
    rows = [
        element("div", element("dt", name.replace("_", " ")), element("dd", written(value)))
        for name, value in pairs
        if value not in (None, "", [], {})
    ]
    return element("dl", *rows) if rows else Html()


def written(value: Any) -> str:
    """A value as people read it.

    >>> written(12345), written({"a": 1, "b": [2, 3]})
    ('12,345', 'a 1, b 2, 3')
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {written(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(written(part) for part in value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)
