"""The last step of `make demo`: searches among characters that the model never saw, on one page.

Every sixth test character is left out of the index: a search for one of them has no right answer. Of every other one,
two images are kept out of the index and asked for. The page shows some queries of every verdict, drawn at
random and not picked for being right, and how often the answers of all queries were right.

    python -m scripts.demo demo
"""

import argparse
import random
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

ABSENT = 6  # one character in so many is not in the index
HELD_OUT = 2  # images of every other character that are asked for
ASKED = 400
SHOWN = 3  # queries of one verdict on the page
HITS = 5
SIDE = 64  # pixels of a picture: more than the model reads, for the eye


@dataclass(frozen=True)
class Asked:
    """A query, what it shows, whether the index has that, and the answer."""

    row: int
    label: str
    present: bool
    answer: Answer

    @property
    def right(self) -> bool:
        return bool(self.answer.hits) and self.answer.hits[0].label == self.label

    @property
    def outcome(self) -> str:
        """In words, for the title of its section."""
        if not self.present:
            return f"{self.label}, which the index does not have"
        return f"{self.label}, found" if self.right else f"{self.label}, taken for {self.answer.hits[0].label}"


def divided(dataset: Dataset) -> tuple[list[int], list[int], list[int]]:
    """Rows to index, rows to ask for whose character is indexed, rows to ask for whose character is not."""
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


def ask(index: Index, dataset: Dataset, rows: Sequence[int], present: bool) -> list[Asked]:
    """What the index answers to these rows."""
    return [
        Asked(row, dataset.label_names[int(dataset.labels[row])], present, index.search(pixels(dataset, row), HITS))
        for row in rows
    ]


def pixels(dataset: Dataset, row: int) -> np.ndarray:
    return dataset.images.open(row).decode().permute(1, 2, 0).numpy()


def by_verdict(asked: Sequence[Asked]) -> dict[str, list[Asked]]:
    """The queries of every verdict, the most trusted verdict first."""
    groups: dict[str, list[Asked]] = {}
    for each in sorted(asked, key=lambda each: -(each.answer.chance or 0.0)):
        groups.setdefault(each.answer.verdict, []).append(each)
    return groups


def table(asked: Sequence[Asked]) -> list[list[str]]:
    """How many queries got which verdict, and how many of those answers were right."""
    rows = [["verdict", "in the index", "of these right", "not in the index"]]
    for verdict, some in by_verdict(asked).items():
        present = [each for each in some if each.present]
        right = sum(each.right for each in present)
        share = f"{right} ({right / len(present):.0%})" if present else "0"
        rows.append([verdict, str(len(present)), share, str(len(some) - len(present))])
    return rows


def shown(asked: Sequence[Asked]) -> dict[str, list[Asked]]:
    """Some queries of every verdict whose character is in the index, then some whose character is not."""
    lots = random.Random(0)
    groups = by_verdict([each for each in asked if each.present])
    groups["not in the index"] = [each for each in asked if not each.present]
    return {title: lots.sample(some, min(SHOWN, len(some))) for title, some in groups.items()}


def demo_page(index: Index, dataset: Dataset, asked: Sequence[Asked]) -> str:
    """The queries with their pictures, by verdict, and the table of all queries."""
    sections = [
        Section(title.replace(" ", "-"), title.capitalize(), join(*(_query(index, dataset, each) for each in some)))
        for title, some in shown(asked).items()
    ]
    head, *rows = table(asked)
    counted = element(
        "table", element("thead", element("tr", *(element("th", cell) for cell in head))),
        element("tbody", *(element("tr", *(element("td", cell) for cell in row)) for row in rows)),
    )  # fmt: skip
    words = note(
        "The model was trained on other characters. No query is in the index. Those above were drawn at random."
    )
    sections.append(
        Section("all", f"All {len(asked):,} queries", join(words, element("div", counted, class_="scroll")))
    )
    subtitle = f"{len(index):,} images of characters that the model never saw in training"
    return page("What looks like this?", subtitle, sections, footer="This page holds its pictures itself.")


def _query(index: Index, dataset: Dataset, asked: Asked) -> Html:
    return join(element("h3", asked.outcome), answer_card(index, as_jpeg(pixels(dataset, asked.row)), asked.answer))


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
    asked = [
        *ask(index, dataset, lots.sample(present, min(ASKED, len(present))), True),
        *ask(index, dataset, lots.sample(absent, min(ASKED // 4, len(absent))), False),
    ]
    print("\n".join(aligned(table(asked))))
    files.write_text(run / "search.html", demo_page(index, dataset, asked))
    index.close()
    print(f"queries with their answers    {run / 'search.html'}")


if __name__ == "__main__":
    main()
