"""The last step of `make demo`: searches among characters that the model never saw, on one page.

Every sixth test character is left out of the index: a search for one of them has no right answer. Two images of every
other character are left out too, and are the queries. The page shows answers drawn at random, then the mistakes that
looked most convincing, and counts how often the answers to all queries were right.

    python -m scripts.demo demo
"""

import argparse
import random
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree

import numpy as np

from lookalike import files
from lookalike.data import Dataset, glyphs
from lookalike.evaluation.table import aligned
from lookalike.report.markup import Html, element, join
from lookalike.report.page.page import Section, note, page
from lookalike.search import Answer, Index
from lookalike.search.pages import answer_card
from lookalike.search.pictures import as_jpeg

ABSENT = 6  # one character in six is not in the index
HELD_OUT = 2  # images of every other character that are queries
QUERIES = 400
SHOWN = 3  # queries in one section of the page
HITS = 5
SIDE = 64  # pixels of a picture: more than the model reads, for the eye
VERDICTS = ("sure", "maybe", "unknown")


@dataclass(frozen=True)
class Query:
    """An image, the character it shows, whether the index has that character, and the answer."""

    row: int
    label: str
    present: bool
    answer: Answer

    @property
    def right(self) -> bool:
        return self.present and self.answer.label == self.label

    @property
    def title(self) -> str:
        """What the picture shows, and what it was mistaken for."""
        if self.right or self.answer.label is None or self.answer.verdict == "unknown":
            return named(self.label)
        return f"{named(self.label)}, taken for {named(self.answer.label)}"


def named(character: str) -> str:
    """
    >>> named("Ӭ")
    'Ӭ (cyrillic capital letter e with diaeresis)'
    """
    return f"{character} ({unicodedata.name(character, 'a character without a name').lower()})"


def divided(dataset: Dataset) -> tuple[list[int], list[int], list[int]]:
    """Rows to index, queries whose character is indexed, queries whose character is not."""
    indexed: list[int] = []
    present: list[int] = []
    absent: list[int] = []
    for place, label in enumerate(dataset.labels.unique().tolist()):
        rows = (dataset.labels == label).nonzero().flatten().tolist()
        if place % ABSENT == 0:
            absent += rows[:HELD_OUT]
        else:
            present += rows[:HELD_OUT]
            indexed += rows[HELD_OUT:]
    return indexed, present, absent


def search(index: Index, dataset: Dataset, rows: Sequence[int], present: bool) -> list[Query]:
    return [
        Query(row, dataset.label_names[int(dataset.labels[row])], present, index.search(pixels(dataset, row), HITS))
        for row in rows
    ]


def pixels(dataset: Dataset, row: int) -> np.ndarray:
    return dataset.images.open(row).decode().permute(1, 2, 0).numpy()


def table(queries: Sequence[Query]) -> list[list[str]]:
    """How many queries got which verdict, and how many of those answers were right."""
    rows = [["verdict", "character in the index", "of these right", "character not in the index"]]
    for verdict in VERDICTS:
        some = [each for each in queries if each.answer.verdict == verdict]
        present, right = sum(each.present for each in some), sum(each.right for each in some)
        share = f"{right} ({right / present:.0%})" if present else "0"
        rows.append([verdict, str(present), share, str(len(some) - present)])
    return rows


def shown(queries: Sequence[Query]) -> dict[str, list[Query]]:
    """The sections of the page: at random what was called sure, what was not, and what cannot be found; mistakes."""
    lots = random.Random(0)
    present = [each for each in queries if each.present]
    mistakes = [each for each in queries if not each.right and each.answer.verdict != "unknown"]

    def some(of: Sequence[Query]) -> list[Query]:
        return lots.sample(of, min(SHOWN, len(of)))

    return {
        "Sure": some([each for each in present if each.answer.verdict == "sure"]),
        "Maybe": some([each for each in present if each.answer.verdict == "maybe"]),
        "Not in the index": some([each for each in queries if not each.present]),
        "Fooled": sorted(mistakes, key=lambda each: -(each.answer.chance or 0.0))[:SHOWN],
    }


SAID = {
    "Not in the index": "These characters were kept out of the index: the right answer is that nothing is like them.",
    "Fooled": "Of all wrong answers, those that it was most confident about.",
}


def demo_page(index: Index, dataset: Dataset, queries: Sequence[Query]) -> str:
    """Some queries with their pictures, and the table of all of them."""
    sections = [
        Section(
            title.replace(" ", "-").lower(),
            title,
            join(*([note(SAID[title])] if title in SAID else []), *(_query(index, dataset, each) for each in some)),
        )
        for title, some in shown(queries).items()
        if some
    ]
    head, *rows = table(queries)
    counted = element(
        "table",
        element("thead", element("tr", *(element("th", cell) for cell in head))),
        element("tbody", *(element("tr", *(element("td", cell) for cell in row)) for row in rows)),
    )
    words = note("The queries above were drawn at random, except those that fooled it.")
    counts = Section("all", f"All {len(queries):,} queries", join(words, element("div", counted, class_="scroll")))
    subtitle = (
        f"The model has never seen any of these characters. It looks for each query among {len(index):,} other "
        "images, and says how far to trust the answer."
    )
    return page(
        "What looks like this?", subtitle, [*sections, counts], footer="All pictures are embedded in this page."
    )


def _query(index: Index, dataset: Dataset, query: Query) -> Html:
    return join(element("h3", query.title), answer_card(index, [as_jpeg(pixels(dataset, query.row))], query.answer))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path, help="the folder of a run on the glyphs")
    run = parser.parse_args().run
    dataset = glyphs(size=SIDE).where(split="test")
    indexed, present, absent = divided(dataset)
    place = run / "unseen.index"
    rmtree(place, ignore_errors=True)
    index = Index.create(place, run / "model")
    index.add(dataset.subset(indexed))
    lots = random.Random(0)
    queries = [
        *search(index, dataset, lots.sample(present, min(QUERIES, len(present))), True),
        *search(index, dataset, lots.sample(absent, min(QUERIES // 4, len(absent))), False),
    ]
    print(f"\n{len(queries)} searches among {len(index):,} images of characters the model never saw:\n")
    print("\n".join(aligned(table(queries))))
    files.write_text(run / "search.html", demo_page(index, dataset, queries))
    index.close()
    print(f"\nOpen {run / 'search.html'} to see queries with their answers, and what fooled it.")


if __name__ == "__main__":
    main()
