"""The page: one file with its sections, style and script, and nothing from outside.

A content-security policy lets only this page's own script run, known by its hash, and nothing be loaded: even a name
that got past the escaping could neither act nor send anything.
"""

from base64 import b64encode
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from importlib.resources import files

from lookalike.report.charts import svg
from lookalike.report.charts.chart import Chart
from lookalike.report.charts.layout import drawing
from lookalike.report.markup import Html, element, join


@dataclass(frozen=True)
class Section:
    """Left out of the page where its body is empty."""

    name: str  # in the address
    title: str
    body: Html


FIGURES = "Every figure is also a file, as SVG and as numbers, in the folder figures beside this page."


def page(title: str, subtitle: str, sections: list[Section], data: Html | str = "", footer: str = FIGURES) -> str:
    """The whole page as text; `data` is what its script reads."""
    script = _resource("page.js") + _resource("map.js")
    present = [section for section in sections if section.body]
    links = [element("a", section.title, href=f"#{section.name}") for section in present]
    top = element("header", element("h1", title), element("p", subtitle, class_="subtitle"))
    body = [element("section", element("h2", section.title), section.body, id=section.name) for section in present]
    foot = element("footer", footer)
    return (
        "<!doctype html>\n"
        + element(
            "html",
            _head(title, script),
            element(
                "body",
                top,
                element("nav", *links, aria_label="Sections") if len(links) > 1 else "",
                element("main", *body),
                foot,
                data,
                Html(f"<script>{script}</script>"),
            ),
            lang="en",
        )
        + "\n"
    )


def _head(title: str, script: str) -> Html:
    seal = b64encode(sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{seal}'"
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("title", title),
        Html(f"<style>{svg.style()}{_resource('page.css')}</style>"),
    )


def _resource(name: str) -> str:
    return files("lookalike.report.page").joinpath(name).read_text(encoding="utf-8")


def figure(chart: Chart) -> Html:
    """A chart with its title and its line of what to see."""
    caption = element("figcaption", element("strong", chart.title), " ", chart.caption)
    return element("figure", svg.draw(drawing(chart)), caption, id=f"figure-{chart.name}")


def figures(*charts: Chart) -> Html:
    return element("div", *(figure(chart) for chart in charts), class_="figures") if charts else Html()


def note(words: str) -> Html:
    return element("p", words, class_="note") if words else join()


def today() -> str:
    now = datetime.now()
    return f"{now.day} {now:%B %Y}"
