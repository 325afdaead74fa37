"""The terms of reports and terminal output: glossary.md, which the site and every page of a run show."""

import re
from importlib.resources import files

from lookalike.report.markup import Html, element

ENTRY = re.compile(r"^\*\*(.+)\*\*\n: ((?:.+\n?)+)", re.M)


def text() -> str:
    """The definition list in Markdown."""
    return (files(__package__) / "glossary.md").read_text(encoding="utf-8")


def terms() -> dict[str, str]:
    """Every term with its meaning.

    >>> terms()["head"]
    'The last layer, which maps features to the embedding.'
    """
    return {term: " ".join(meaning.split()) for term, meaning in ENTRY.findall(text())}


def anchor(term: str) -> str:
    """The place of a term on the page.

    >>> anchor("map@r"), anchor("recall@1")
    ('word-map-r', 'word-precision-1-recall-1')
    """
    entry = next(each for each in terms() if term in each.split(", "))
    return "word-" + re.sub(r"\W+", "-", entry).strip("-")


def link(term: str) -> Html:
    """A term that leads to its meaning."""
    return element("a", term, href=f"#{anchor(term)}")


def section() -> Html:
    rows = [
        element("div", element("dt", term, id=anchor(term.split(", ")[0])), element("dd", meaning))
        for term, meaning in terms().items()
    ]
    return element("dl", *rows, class_="glossary")
