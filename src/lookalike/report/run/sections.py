"""The sections of the page, in the order of what a reader wants to know."""

from collections.abc import Mapping
from datetime import datetime

from lookalike.report.page.map_view import map_view
from lookalike.report.page.markup import Html, data_block, element, join
from lookalike.report.page.page import Section, figure, figures, note, page
from lookalike.report.run import class_table, confusions, embedding_map, facts, pictures, strips
from lookalike.report.run import headline as summary
from lookalike.report.run.content import Content
from lookalike.report.run.figures.pairs import TARGETS, Threshold, thresholds


def draw(content: Content, found: Mapping[int, pictures.Pixels]) -> str:
    """The whole page as text."""
    addresses = {row: pictures.data_address(found[row]) for row in set(content.pictured()) if row in found}
    sheet, cells = pictures.sheet(found, content.map.rows)
    script = embedding_map.for_script(content.map, content.run.test, cells, sheet)
    title = str(content.run.result.get("title") or content.run.folder.resolve().name)
    sections = [
        Section("results", "How good is it?", _results(content)),
        Section("training", "Training", _training(content)),
        Section("queries", "Queries", strips.draw(content.strips, addresses)),
        Section("confusions", "Most confused classes", _confused(content, addresses)),
        Section("classes", "Classes", _classes(content)),
        Section("pairs", "Same or different?", _pairs(content)),
        Section("map", "Map", map_view(content.map, content.run.test, bool(sheet))),
        Section("shape", "Shape of the space", _shape(content)),
        Section("data", "Data", facts.data_section(content.run)),
        Section("repeat", "Settings", facts.repeat_section(content.run)),
    ]
    return page(title, subtitle(content), [part for part in sections if part.body], data_block("map-data", script))


def subtitle(content: Content) -> str:
    model = content.run.result.get("model") or {}
    data = content.run.result.get("data") or {}
    dimensions = content.run.test.embeddings.shape[1]
    parts = [
        str(model.get("backbone") or ""),
        f"{dimensions:,} dimensions",
        str(data.get("name") or ""),
        f"{datetime.now():%-d %B %Y}",
    ]
    return " · ".join(part for part in parts if part)


def _results(content: Content) -> Html:
    head = summary.headline(content.run, content.measured.result, content.results)
    table = element("details", element("summary", "All metrics"), summary.results_table(content.results))
    return join(head, figures(content.charts["results"], content.charts["recall"]), table)


def _training(content: Content) -> Html:
    names = ("loss", "validation", "learning_rate", "speed")
    charts = [content.charts[name] for name in names if name in content.charts]
    if not charts:
        return Html()
    return join(facts.health(content.run), figures(*charts))


def _sampled(content: Content) -> str:
    part, whole = content.measured.pairs_of, len(content.run.test.labels)
    return "" if part == whole else f"Measured on {part:,} of {whole:,} queries, drawn at random."


def _confused(content: Content, addresses: Mapping[int, str]) -> Html:
    if not content.confused:
        return element("p", "No query has its nearest neighbour in another class.")
    words = "Queries whose nearest neighbour is of the other class. Could you tell these apart? "
    return join(note(words + _sampled(content)), confusions.draw(content.confused, addresses))


def _classes(content: Content) -> Html:
    number = len(content.classes)
    more = (
        f", the {class_table.SHOWN:,} weakest of {number:,}; figures/classes.json has all"
        if number > class_table.SHOWN
        else ""
    )
    parts = [note("A click on a heading sorts by it. recall@1 and map@r are means over the queries of a row.")]
    if content.categories:
        parts.append(class_table.draw(content.categories, "By category, the weakest first", "by-category"))
    find = element("input", type="search", id="find-class", placeholder="part of a name", aria_label="Find a class")
    parts.append(element("p", element("label", "Find a class ", find), class_="find"))
    return join(*parts, class_table.draw(content.classes, f"By class, the weakest first{more}", "by-class"))


def _pairs(content: Content) -> Html:
    charts = [figure(content.charts[name]) for name in ("similarity", "precision_recall", "roc")]
    table = _threshold_table({row.target: row for row in thresholds(content.measured.tally)})
    return join(note(_sampled(content)), element("div", *charts, table, class_="figures"))


def _threshold_table(found: Mapping[float, Threshold]) -> Html:
    rows = []
    for target in TARGETS:
        row = found.get(target)
        cells = (f"{row.threshold:.4f}", f"{100 * row.recall:.1f} %") if row else ("not reached", "–")
        head = element("th", f"{100 * target:.0f} %", scope="row", class_="number")
        rows.append(element("tr", head, *(element("td", cell, class_="number") for cell in cells)))
    names = ("precision", "similarity ≥", "recall")
    heads = [element("th", name, scope="col", class_="number") for name in names]
    caption = element("caption", "Thresholds for a target precision: call two images the same class above them.")
    table = element("table", caption, element("thead", element("tr", *heads)), element("tbody", *rows))
    return element("div", table, class_="scroll beside")


def _shape(content: Content) -> Html:
    meanings = {
        "rho": "how far the spectrum is from flat; lower spreads over more directions",
        "intra": "mean distance (1 − cosine) within a class; lower is tighter",
        "inter": "mean distance (1 − cosine) between class centres; higher is farther apart",
        "intra_inter": "the first divided by the second; lower is better",
    }
    rows = [
        element(
            "div",
            element("dt", name.replace("_", " / ")),
            element("dd", element("strong", f"{value:.3f}"), " ", meanings[name]),
        )
        for name, value in content.measured.shape.items()
    ]
    part, whole = content.measured.spectrum_of, len(content.run.test.all_labels)
    words = "" if part == whole else f"Spectrum and rho of {part:,} of {whole:,} vectors, drawn at random."
    drawn = figure(content.charts["spectrum"]) if "spectrum" in content.charts else Html()
    return join(note(words), element("div", drawn, element("dl", *rows, class_="beside single"), class_="figures"))
