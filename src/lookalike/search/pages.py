"""Self-contained pages of a search, a calibration, and duplicates: pictures inside, nothing loaded from elsewhere."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from types import MappingProxyType
from typing import NamedTuple

from lookalike.files import printable
from lookalike.report.markup import Html, element
from lookalike.report.page.page import Section, figures, note, page
from lookalike.report.run.figures import calibration_chart
from lookalike.search.calibration.measuring import Calibrated
from lookalike.search.index import Index
from lookalike.search.items import Answer, Hit, Item
from lookalike.search.pictures import as_url, thumbnail
from lookalike.search.quality import FLIP
from lookalike.search.repeats import LEVELS, Group
from lookalike.search.things import text_of
from lookalike.search.wording import in_brief

SHOWN = 12  # pictures of one group
PHOTOS = 4  # of a thing, beside its best one


class Lit(NamedTuple):
    """Why a hit was found: both pictures, lit where the similarity comes from, and the same in `words`."""

    query: bytes
    hit: bytes
    words: str


def search_page(
    index: Index,
    answers: Sequence[tuple[str, Sequence[bytes | None], Answer]],
    why: Mapping[int, Sequence[Lit | str]] = MappingProxyType({}),
) -> str:
    """Every query (its name and pictures) with its hits.

    `why`: of a query, by its place, each hit explained, or why it cannot be.
    """
    sections = [
        Section(f"query-{place + 1}", name, answer_card(index, pictures, answer, why.get(place, ())))
        for place, (name, pictures, answer) in enumerate(answers)
    ]
    return page("Search", f"{index.shown}: {len(index):,} items", sections, footer=FOOTER)


FOOTER = "All pictures are embedded in this page; it loads nothing."


def answer_card(index: Index, pictures: Sequence[bytes | None], answer: Answer, why: Sequence[Lit | str] = ()) -> Html:
    """A query, its `pictures`, and its verdict, beside its hits."""
    words = answer.words or answer.verdict
    before, _, after = (in_brief(answer) if answer.words else words).partition(words)
    said = element("figcaption", before, element("strong", words), after)
    query = element("figure", *(_image(picture, "the query") for picture in pictures), said)
    hits = [_card(index, hit, lit) for hit, lit in zip_longest(answer.hits, why)] or [
        note("Nothing in the index answers this search.")
    ]
    return element("div", query, element("div", *hits, class_="hits"), class_="search")


def _card(index: Index, hit: Hit, lit: Lit | str | None) -> Html:
    thing = text_of(hit.thing)
    others = [_image(thumbnail(index.store, photo.item, 128), photo.id) for photo in hit.photos[1 : 1 + PHOTOS]]
    bar = element("meter", f"{hit.similarity:.3f}", min="0", max="1", value=f"{max(0.0, hit.similarity):.4f}")
    return element(
        "figure",
        *(_lit_images(hit, lit) if isinstance(lit, Lit) else [_image(thumbnail(index.store, hit.item), hit.id)]),
        element(
            "figcaption",
            element("strong", thing or hit.label or "without a label"),
            " ",
            bar,
            f" {hit.similarity:.4f}",
            element("small", printable(hit.path or hit.id)),
            *([] if lit is None else [element("small", lit.words if isinstance(lit, Lit) else lit)]),
        ),
        *([element("div", *others, class_="photos")] if others else []),
    )


def _lit_images(hit: Hit, lit: Lit) -> list[Html]:
    where = "highlighted where the similarity comes from"
    return [_image(lit.hit, f"{hit.id}, {where}"), _image(lit.query, f"the query, {where}")]


def _image(jpeg: bytes | None, name: str) -> Html:
    return element("p", name, class_="note") if jpeg is None else element("img", src=as_url(jpeg), alt=name)


def calibration_page(index: Index, calibrated: Calibrated) -> str:
    """What a similarity means: the curve, the thresholds, and what was compared."""
    calibration = calibrated.calibration
    chart = calibration_chart(calibration.as_json())
    return page(
        "Calibration",
        f"{index.shown}, {calibration.date}",
        [
            Section("verdict", "Verdict", element("div", *(element("p", line) for line in sentences(calibrated)))),
            Section("curve", "Thresholds", figures(*([] if chart is None else [chart]))),
            Section("ways", "Ways to search, compared", _ways(calibrated)),
        ],
        footer=FOOTER,
    )


def sentences(calibrated: Calibrated) -> list[str]:
    """What calibration found, in words."""
    calibration = calibrated.calibration
    low, high = calibration.interval
    lines = [calibration.promise]
    if calibration.sure is not None:
        lines.append(
            f"sure: answers with a chance of {calibration.sure:.3f} or more. Of these, {calibration.precision:.1%} "
            f"were right [{low:.1%}, {high:.1%}]."
        )
    if calibration.models is not None:
        lines.append(
            "unknown: the match is lower, or the first hits are less similar, than for at least 95% of pictures whose "
            "class is in the index. maybe: all other answers."
        )
    queries = "items of the index, each left out of its own search," if calibration.source == "index" else "pictures"
    lines.append(
        f"Measured with {calibration.queries:,} {queries} of {calibration.classes:,} classes, among "
        f"{calibration.items:,} items; each class in turn was absent, had one photo, three, or all."
    )
    if calibrated.absent:
        lines.append(
            f"{calibrated.absent:,} further classes of these pictures are not in the index and were always absent."
        )
    if calibration.source == "index":
        lines.append("This holds for photos like those in the index. For other photos, calibrate with some of them.")
    if calibration.seen_in_training:
        lines.append("Some of these classes were seen in training: answers for new classes will be less reliable.")
    return [*lines, *_switched(calibrated)]


def _switched(calibrated: Calibrated) -> Iterator[str]:
    on = calibrated.quality.names
    if on:
        yield f"Switched on: {', '.join(on)}."
    for trial in calibrated.compared[1::2]:
        if trial.kept and trial.name not in on:
            yield f"Left off as you asked, although it would help: {trial.name}."
        elif not trial.kept:
            instead = "it stays off" if trial.name == FLIP else "a thing is ranked by its best one"
            yield f"{trial.name.capitalize()} did not help beyond the noise, so {instead}."


def ways(calibrated: Calibrated) -> list[list[str]]:
    """The rows of a table of what was compared, each way to search below that without it; its head first."""
    rows = [["", "labels right", "difference", "95% interval", "by number of photos", "helps"]]
    for place, trial in enumerate(calibrated.compared):
        low, high = trial.interval
        sizes = ", ".join(f"{size}: {value:+.3f}" for size, value in trial.by_size.items())
        helps = ("yes" if trial.kept else "no") if place % 2 else ""
        numbers = [f"{trial.recall:.3f}", f"{trial.difference:+.3f}", f"[{low:+.3f}, {high:+.3f}]"]
        rows.append([trial.name, *numbers, sizes, helps])
    return rows


def _ways(calibrated: Calibrated) -> Html:
    if not calibrated.compared:
        return note("Nothing was compared: that takes further images.")
    head, *rows = ways(calibrated)
    header = element("thead", element("tr", *(element("th", name) for name in head)))
    body = element("tbody", *(element("tr", *(element("td", cell) for cell in row)) for row in rows))
    return element("div", element("table", header, body), class_="scroll")


def duplicates_page(index: Index, groups: Sequence[Group]) -> str:
    """Groups of duplicates, one section per level."""
    sections = []
    for level in LEVELS:
        some = [group for group in groups if group.level == level]
        if some:
            body = element(
                "div",
                note(f"{len(some):,} group{'s' * (len(some) != 1)}"),
                *(_group(index, group) for group in some[:500]),
            )
            sections.append(Section(level.replace(" ", "-"), level.capitalize(), body))
    if not sections:
        sections = [Section("nothing", "No duplicates", note("No picture appears twice."))]
    return page("Duplicates", f"{index.shown}: {len(index):,} items", sections, footer=FOOTER)


def _group(index: Index, group: Group) -> Html:
    tiles = [
        element("figure", _image(thumbnail(index.store, item, 128), item.id), element("figcaption", _words(item)))
        for item in group.items[:SHOWN]
    ]
    return element("div", element("p", f"similarity {group.similarity:.4f}"), element("div", *tiles, class_="hits"))


def _words(item: Item) -> Html:
    return element("span", element("strong", item.label or ""), " ", element("small", printable(item.path or item.id)))
