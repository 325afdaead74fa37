"""The sections of the page, in the order of what a reader wants to know."""

from collections.abc import Mapping

from lookalike.report.charts.drawing import Pixels
from lookalike.report.charts.svg import data_address
from lookalike.report.markup import Html, data_block, element, join
from lookalike.report.page import glossary
from lookalike.report.page.page import Section, figure, figures, note, page, today
from lookalike.report.page.tables import scrolling
from lookalike.report.run import class_table, confusions, embedding_map, facts, headline, labels, queries, verdict
from lookalike.report.run.content import Content
from lookalike.report.run.embedding_map import map_view
from lookalike.report.run.pair_figures import TARGETS, Threshold, share, thresholds
from lookalike.report.run.thumbnails import sheet

MEANINGS = {
    "rho": "how far the spectrum is from flat; lower spreads over more directions",
    "intra": "mean distance (1 − cosine) within a class; lower is tighter",
    "inter": "mean distance (1 − cosine) between class centres; higher is farther apart",
    "intra_inter": "the first divided by the second; lower is better",
}


def draw(content: Content, pictures: Mapping[int, Pixels]) -> str:
    """The whole page as text."""
    run = content.run
    addresses = {row: data_address(pictures[row]) for row in content.pictured() if row in pictures}
    address, cells = sheet(pictures, content.map.rows)
    script = embedding_map.for_script(content.map, run.test, cells, address)
    sections = [
        Section("verdict", "Verdict", _verdict(content)),
        Section("results", "How good is it?", _results(content)),
        Section("candidates", "What else was tried", _candidates(content)),
        Section("training", "Training", _training(content)),
        Section("queries", "Queries", queries.draw(content.strips, addresses)),
        Section("labels", "Labels to check", labels.draw(content.labels, addresses)),
        Section("confusions", "Most confused classes", _confused(content, addresses)),
        Section("classes", "Classes", _classes(content)),
        Section("pairs", "Same or different?", _pairs(content)),
        Section("calibration", "When to believe an answer", _calibration(content)),
        Section("map", "Map", map_view(content.map, run.test, bool(address))),
        Section("shape", "Shape of the space", _shape(content)),
        Section("data", "Data", facts.data_section(run)),
        Section("repeat", "Settings", facts.repeat_section(run)),
        Section("glossary", "Glossary", glossary.section()),
    ]
    title = str(run.result.get("title") or run.folder.path.resolve().name)
    return page(title, _subtitle(content), sections, data_block("map-data", script))


def _subtitle(content: Content) -> str:
    backbone, data = content.run.part("model").get("backbone"), content.run.part("data").get("name")
    dimensions = f"{content.run.test.embeddings.shape[1]:,} dimensions"
    return " · ".join(str(part) for part in (backbone, dimensions, data, today()) if part)


def _verdict(content: Content) -> Html:
    head = headline.headline(content.run, content.measures.result, content.results)
    return join(head, verdict.draw(content.run.part("verdict")))


def _candidates(content: Content) -> Html:
    measured = [content.charts["networks"]] if "networks" in content.charts else []
    return join(verdict.candidates(content.run.part("verdict")), figures(*measured))


def _results(content: Content) -> Html:
    table = element("details", element("summary", "All metrics"), headline.results_table(content.results))
    return join(figures(content.charts["results"], content.charts["recall"]), table)


def _training(content: Content) -> Html:
    names = ("loss", "validation", "learning_rate", "speed")
    charts = figures(*(content.charts[name] for name in names if name in content.charts))
    return join(facts.health(content.run), charts) if charts else Html()


def _sampled(content: Content) -> str:
    some, whole = content.measures.pairs_of, len(content.run.test.labels)
    return "" if some == whole else f"Measured on {some:,} of {whole:,} queries, drawn at random."


def _confused(content: Content, addresses: Mapping[int, str]) -> Html:
    if not content.confused:
        return element("p", "No query has its nearest neighbour in another class.")
    words = "Queries whose nearest neighbour is of the other class. Could you tell these apart? "
    return join(note(words + _sampled(content)), confusions.draw(content.confused, addresses))


def _classes(content: Content) -> Html:
    number, most = len(content.classes), class_table.SHOWN
    more = f", the {most:,} weakest of {number:,}; figures/classes.json has all" if number > most else ""
    parts = [note("Click a heading to sort by it. recall@1 and map@r are means over the queries of a row.")]
    if content.categories:
        parts.append(class_table.draw(content.categories, "By category, the weakest first", "by-category"))
    search = element("input", type="search", id="find-class", placeholder="part of a name", aria_label="Find a class")
    parts.append(element("p", element("label", "Find a class ", search), class_="find"))
    return join(*parts, class_table.draw(content.classes, f"By class, the weakest first{more}", "by-class"))


def _pairs(content: Content) -> Html:
    charts = [figure(content.charts[name]) for name in ("similarity", "precision_recall", "roc")]
    table = _threshold_table({row.target: row for row in thresholds(content.measures.tally)})
    return join(note(_sampled(content)), element("div", *charts, table, class_="figures"))


def _calibration(content: Content) -> Html:
    """The verdicts that an index made from this run starts with."""
    facts = content.run.part("calibration")
    if not facts:
        return Html()
    score, how = ("chance", ".1%") if facts.get("models") or facts.get("weights") else ("similarity", ".3f")
    reason = f" ({facts['reason']})" if facts.get("reason") else ""
    sure = f"A search answers “sure” at a {score} of {facts['sure'] or 0:{how}} or more"
    covered = f"Their coverage is {facts['coverage']:.1%}. "
    words = (
        (f"{sure}: " if facts["sure"] is not None else "No answer is called “sure”: the aim is that ")
        + f"at least {facts['target']:.0%} of such answers are right, on other classes too{reason}. "
        + (covered if facts["sure"] is not None else "")
        + f"This was measured with {facts['classes']:,} classes; n classes promise at most n / (n + 1), so 95% takes "
        "19 of them or more. Calibrate an index of your own with lookalike calibrate."
    )
    return join(element("p", glossary.linked(words)), figures(content.charts["calibration"]))


def _threshold_table(reached: Mapping[float, Threshold]) -> Html:
    rows = []
    for target in TARGETS:
        row = reached.get(target)
        cells = (f"{row.threshold:.4f}", share(row.recall)) if row else ("not reached", "–")
        head = element("th", f"{target:.2f}", scope="row", class_="number")
        rows.append(element("tr", head, *(element("td", cell, class_="number") for cell in cells)))
    names = ("precision", "similarity ≥", "recall")
    heads = [element("th", glossary.linked(name), scope="col", class_="number") for name in names]
    caption = "Thresholds for a target precision: call two images the same class above them."
    return element("div", scrolling(None, caption, heads, rows), class_="beside")


def _shape(content: Content) -> Html:
    rows = [
        element(
            "div",
            element("dt", glossary.linked(name.replace("_", " / "))),
            element("dd", element("strong", f"{value:.3f}"), " ", MEANINGS[name]),
        )
        for name, value in content.measures.shape.items()
    ]
    some, whole = content.measures.spectrum_of, len(content.run.test.all_labels)
    words = "" if some == whole else f"Spectrum and rho of {some:,} of {whole:,} vectors, drawn at random."
    spectrum = figure(content.charts["spectrum"]) if "spectrum" in content.charts else Html()
    return join(note(words), element("div", spectrum, element("dl", *rows, class_="beside single"), class_="figures"))
