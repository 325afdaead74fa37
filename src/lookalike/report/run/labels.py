"""Labels to check: test images whose neighbours agree on another class, with their files and the evidence."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from lookalike.data.audit.suspicious_labels import COLUMNS, Doubt, as_table, suspicious_labels
from lookalike.evaluation import Result
from lookalike.evaluation.inputs import Codes
from lookalike.labels import encode
from lookalike.report.markup import Html, element, join
from lookalike.report.page.page import note
from lookalike.report.page.tables import file_name, sortable
from lookalike.report.run.record import UnseenImages
from lookalike.report.run.tiles import Tile, tile

PAIRS = 200_000_000  # scores computed at most
SHOWN = 40  # rows of the table on the page; the file has all
MEANING = (
    "The neighbours of each image agree on one other class, and none is of the image's own class. Either the label is "
    "wrong, or the two classes look alike."
)


@dataclass(frozen=True)
class LabelCheck:
    """The doubts, the strongest first, and the same as a table with names and files."""

    doubts: list[Doubt]
    table: list[dict[str, str]]
    paths: list[str]  # of all rows
    complete: bool  # else only the worst queries were looked at

    def tiles(self) -> list[Tile]:
        """The pictures of the table: each image and the nearest one of the class that its neighbours suggest."""
        shown = []
        for doubt, row in zip(self.doubts[:SHOWN], self.table, strict=False):
            path, label, suggested, _ = (row[name] for name in COLUMNS)
            shown.append(Tile(doubt.row, label, "query", f"an image labelled {label}", path))
            nearest = self.paths[doubt.nearest]
            shown.append(Tile(doubt.nearest, suggested, "plain", f"its nearest image, labelled {suggested}", nearest))
        return shown


def check_labels(test: UnseenImages, result: Result) -> LabelCheck:
    """Only queries whose nearest neighbour is of another class can be in doubt; the worst come first."""
    paths = [test.path(row) or f"row {row}" for row in range(len(test.all_labels))]
    if test.sets is not None:  # neighbours that share no label are no reason to doubt one
        return LabelCheck([], [], paths, complete=True)
    values = result.per_query["map@r"]
    wrong = np.flatnonzero(result.per_query["recall@1"] < 1)
    wrong = wrong[np.argsort(values[wrong], kind="stable")]
    gallery = np.arange(len(test.labels), len(test.all_labels))
    candidates: Codes = np.concatenate((wrong, gallery)).astype(np.int64)
    most = max(1, PAIRS // len(test.all_labels))
    (codes,), _ = encode(test.all_labels)
    vectors, rows = torch.from_numpy(test.all_vectors), torch.from_numpy(candidates[:most])
    doubts = suspicious_labels(vectors, torch.from_numpy(codes), rows=rows)
    return LabelCheck(doubts, as_table(doubts, test.all_labels, paths), paths, len(candidates) <= most)


def draw(checked: LabelCheck, addresses: Mapping[int, str]) -> Html:
    if not checked.doubts:
        return element("p", "No test image has neighbours that agree on a class other than its own.")
    total, tiles = len(checked.doubts), checked.tiles()
    rows = []
    for place, row in enumerate(checked.table[:SHOWN]):
        path, label, suggested, evidence = (row[name] for name in COLUMNS)
        image, nearest = (tile(shown, addresses) for shown in tiles[2 * place : 2 * place + 2])
        rows.append([join(image, nearest), file_name(path), label, suggested, evidence])
    some = f"the {SHOWN} strongest of {total:,}" if total > SHOWN else f"{total:,}"
    limited = "" if checked.complete else " Only the worst queries were checked."
    button = element("button", "copy the file names", type="button", class_="copy-all", data_copies="#labels td .path")
    return join(
        note(MEANING + limited),
        element("p", button, " ", element("code", "lookalike audit --run RUN"), " writes all of them as CSV."),
        sortable("suspicious", f"Labels to check: {some}", ["image and nearest", "file", *COLUMNS[1:]], rows),
    )
