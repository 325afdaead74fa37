"""Every class and every category with its numbers, in tables that the page sorts."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from lookalike.evaluation import Result
from lookalike.evaluation.result import Confusion
from lookalike.report.page.markup import Html, element, join
from lookalike.report.run.reading import Unseen

SHOWN = 1000  # rows of the table on the page; the file has all
NUMBERS = ("queries", "recall@1", "map@r")


def classes(test: Unseen, result: Result, confusions: Sequence[Confusion]) -> list[dict[str, Any]]:
    """One row per class, the weakest first."""
    recall, precision = result.by_class("recall@1"), result.by_class("map@r")
    taken: dict[Any, Confusion] = {}
    for confusion in confusions:  # the most frequent comes first
        taken.setdefault(confusion.truth, confusion)
    category = _category_of_class(test)
    rows = []
    for label, share in precision.items():
        row: dict[str, Any] = {"class": label, "map@r": share.value, "recall@1": recall[label].value}
        row["queries"] = share.queries
        if category:
            row["category"] = category.get(str(label), "")
        row["most often taken for"] = f"{taken[label].taken_for} ({taken[label].queries}×)" if label in taken else ""
        rows.append(row)
    return sorted(rows, key=lambda row: (row["map@r"], str(row["class"])))


def categories(test: Unseen, result: Result) -> list[dict[str, Any]]:
    """One row per category, the weakest first; none where the data has no categories."""
    if test.categories is None:
        return []
    recall, precision = result.by_category("recall@1"), result.by_category("map@r")
    sizes = Counter(category for category, _ in set(zip(test.categories, test.labels, strict=True)))
    rows = [
        {"category": name, "map@r": share.value, "recall@1": recall[name].value, "queries": share.queries,
         "classes": sizes[str(name)]}
        for name, share in precision.items()
    ]  # fmt: skip
    return sorted(rows, key=lambda row: (row["map@r"], str(row["category"])))


def _category_of_class(test: Unseen) -> dict[str, str]:
    if test.categories is None:
        return {}
    votes: dict[str, Counter[str]] = {}
    for label, category in zip(test.labels, test.categories, strict=True):
        votes.setdefault(label, Counter())[category] += 1
    return {label: counter.most_common(1)[0][0] for label, counter in votes.items()}


def draw(rows: Sequence[dict[str, Any]], title: str, kind: str) -> Html:
    """A sortable table; `title` is its caption."""
    heads = [
        element(
            "th", element("button", name, type="button"), scope="col", class_="number" if is_number(name) else None,
            aria_sort="ascending" if name == "map@r" else "none",
        )
        for name in rows[0]
    ]  # fmt: skip
    body = [element("tr", *(_cell(name, value) for name, value in row.items())) for row in rows[:SHOWN]]
    table = element(
        "table", element("caption", title), element("thead", element("tr", *heads)), element("tbody", *body),
        class_=f"sortable {kind}",
    )  # fmt: skip
    return element("div", table, class_="scroll", tabindex="0", role="region", aria_label=title)


def is_number(name: str) -> bool:
    return name in NUMBERS or name == "classes"


def _cell(name: str, value: Any) -> Html:
    if not is_number(name):
        return element("td", value)
    if isinstance(value, int):
        return element("td", f"{value:,}", class_="number", data_value=value)
    bar = element("span", class_="bar", style=f"--share:{value:.3f}", aria_hidden="true")
    return element("td", join(bar, f"{100 * value:.1f} %"), class_="number", data_value=f"{value:.6f}")
