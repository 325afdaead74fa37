"""Every class and every category with its numbers, the weakest first."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from lookalike.evaluation import Result
from lookalike.evaluation.result import Confusion, Share
from lookalike.report.markup import Html
from lookalike.report.page.tables import Cell, Number, fraction, sortable
from lookalike.report.run.record import UnseenImages

SHOWN = 1000  # rows of the table on the page; the file has all
ClassRow = dict[str, Any]


def classes(test: UnseenImages, result: Result, confusions: Sequence[Confusion]) -> list[ClassRow]:
    """One row per class."""
    mistaken: dict[Any, Confusion] = {}
    for confusion in confusions:  # the most frequent comes first
        mistaken.setdefault(confusion.truth, confusion)
    category = _category_of_class(test)
    rows = _rows("class", result.by_class("map@r"), result.by_class("recall@1"))
    for row in rows:
        label = row["class"]
        if category:
            row["category"] = category.get(str(label), "")
        nearest = mistaken.get(label)
        row["most often taken for"] = f"{nearest.taken_for} ({nearest.queries}×)" if nearest else ""
    return rows


def categories(test: UnseenImages, result: Result) -> list[ClassRow]:
    """One row per category; none where the data has no categories."""
    if test.categories is None:
        return []
    sizes = Counter(category for category, _ in set(zip(test.categories, test.labels, strict=True)))
    rows = _rows("category", result.by_category("map@r"), result.by_category("recall@1"))
    return [row | {"classes": sizes[str(row["category"])]} for row in rows]


def _rows(name: str, precision: Mapping[Any, Share], recall: Mapping[Any, Share]) -> list[ClassRow]:
    rows = [
        {name: label, "map@r": share.value, "recall@1": recall[label].value, "queries": share.queries}
        for label, share in precision.items()
    ]
    return sorted(rows, key=lambda row: (row["map@r"], str(row[name])))


def _category_of_class(test: UnseenImages) -> dict[str, str]:
    if test.categories is None:
        return {}
    votes: dict[str, Counter[str]] = {}
    for label, category in zip(test.labels, test.categories, strict=True):
        votes.setdefault(label, Counter())[category] += 1
    return {label: counter.most_common(1)[0][0] for label, counter in votes.items()}


def draw(rows: Sequence[ClassRow], caption: str, kind: str) -> Html:
    return sortable(
        kind, caption, list(rows[0]), [[_cell(value) for value in row.values()] for row in rows[:SHOWN]], "map@r"
    )


def _cell(value: Any) -> Cell:
    if isinstance(value, float):
        return fraction(value)
    return Number(f"{value:,}", value) if isinstance(value, int) else str(value)
