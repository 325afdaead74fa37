"""The terms of reports and terminal output: glossary.md, which the site and every page of a run show."""

import re
from functools import cache
from importlib.resources import files

from lookalike.report.markup import Html, element, join, text

ENTRY = re.compile(r"^\*\*(.+)\*\*\n: ((?:.+\n?)+)", re.M)


def written() -> str:
    """The definition list in Markdown."""
    return (files(__package__) / "glossary.md").read_text(encoding="utf-8")


@cache
def terms() -> dict[str, str]:
    """Every entry, of one or more terms, with its meaning.

    >>> terms()["head"]
    'The last layer, which maps features to the embedding.'
    """
    return {term: " ".join(meaning.split()) for term, meaning in ENTRY.findall(written())}


@cache
def _any_term() -> re.Pattern[str]:
    """Any term as a whole word, the longest first; K stands for a number."""
    names = sorted((name for entry in terms() for name in entry.split(", ")), key=len, reverse=True)
    patterns = "|".join(re.escape(name).replace("@K", r"@\d+") for name in names)
    return re.compile(rf"(?<![\w@])(?:{patterns})(?!\w)")


def entry(term: str) -> str:
    """The entry that explains a term.

    >>> entry("recall@1"), entry("recall@10")
    ('precision@1, recall@1', 'recall@K')
    """
    names = {name: each for each in terms() for name in each.split(", ")}
    return names.get(term) or names[re.sub(r"@\d+$", "@K", term)]


def anchor(term: str) -> str:
    """The place of a term on the page.

    >>> anchor("map@r"), anchor("recall@1")
    ('word-map-r', 'word-precision-1-recall-1')
    """
    return "word-" + re.sub(r"\W+", "-", entry(term)).strip("-")


def link(term: str, shown: str | None = None) -> Html:
    """A term, or what is shown in its place, that leads to its meaning."""
    label = None if shown is None else f"what {term} means"
    return element("a", shown or term, href=f"#{anchor(term)}", aria_label=label)


def linked(words: str) -> Html:
    """A sentence or name whose terms lead to their meaning, each where it comes first.

    >>> linked("raw head")
    'raw <a href="#word-head">head</a>'
    """
    parts, seen, end = [], set(), 0
    for found in _any_term().finditer(words):
        if entry(found[0]) not in seen:
            parts += [text(words[end : found.start()]), link(found[0])]
            seen.add(entry(found[0]))
            end = found.end()
    return join(*parts, words[end:])


def mark(words: str) -> Html:
    """A question mark that leads to the first term of a heading; nothing where it has none."""
    found = _any_term().search(words)
    return Html() if found is None else link(found[0], "?")


def section() -> Html:
    rows = [
        element("div", element("dt", term, id=anchor(term.split(", ")[0])), element("dd", meaning))
        for term, meaning in terms().items()
    ]
    return element("dl", *rows, class_="glossary")
