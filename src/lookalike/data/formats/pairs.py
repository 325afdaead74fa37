"""A table of judged pairs: which two images people take for the same, and which for different.

The columns `left` and `right` are paths and `same` says yes or no; `split` is optional, others are ignored. Images that
are the same share a label of their pair. Where some pairs are different, only those are negatives, and a pair that
nobody judged plays no part in training or evaluation; where none is, all unlisted pairs are negatives.
"""

from pathlib import Path

import numpy as np
import torch

from lookalike.data.dataset import SPLITS, Dataset
from lookalike.data.formats.table import ALIASES, KINDS, cells
from lookalike.data.images.source import Files
from lookalike.data.string_column import StringColumn
from lookalike.data.vocabulary import UNKNOWN
from lookalike.errors import UserError, check
from lookalike.files import printable
from lookalike.label_sets import EMPTY, LabelSets

COLUMNS = ("left", "right", "same")
ANSWERS = {
    "1": True,
    "yes": True,
    "true": True,
    "same": True,
    "0": False,
    "no": False,
    "false": False,
    "different": False,
}


def is_pairs(file: Path) -> bool:
    """Whether a table is one of pairs, by its first line."""
    if file.suffix.lower() not in KINDS:
        return False
    names = [name.strip().lower() for name in next(cells(file), [])]
    return all(name in names for name in COLUMNS) and "path" not in names


def pairs(path: str | Path, root: str | Path | None = None) -> Dataset:
    """The CSV, TSV or Parquet file at `path` with the columns left, right and same (yes or no; split if you have it).

    Relative paths start at the table's own folder unless `root` is given. Every image is a row of the data set.
    """
    file = Path(path).expanduser()
    check(
        file.is_file(), f"there is no table '{file}': give a .csv, .tsv or .parquet file with columns left,right,same"
    )
    check(is_pairs(file), f"'{file.name}' is not a table of pairs: its first line must name left, right and same")
    judged = _Judged(file)
    lines = cells(file)
    places = {name.strip().lower(): place for place, name in enumerate(next(lines))}
    for number, row in enumerate(lines, start=2):
        if any(row):
            judged.add(
                number,
                [row[places[name]].strip() if places[name] < len(row) else "" for name in COLUMNS],
                row[places["split"]].strip().lower() if "split" in places else None,
            )
    base = file.parent if root is None else Path(root).expanduser()
    return judged.finish(printable(file.stem), base)


class _Judged:
    """The pairs of a table while it is read."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.images: dict[str, int] = {}
        self.splits: dict[int, int] = {}
        self.same: list[tuple[int, int]] = []
        self.different: list[tuple[int, int]] = []

    def add(self, number: int, row: list[str], split: str | None) -> None:
        left, right, answer = row
        where = f"'{self.file.name}' line {number}"
        check(bool(left and right), f"{where} names only one image: every row needs left and right")
        check(left != right, f"{where} compares '{left}' with itself")
        if answer.lower() not in ANSWERS:
            raise UserError(f"{where} answers '{answer}': write yes or no, 1 or 0, same or different")
        pair = (self._image(left), self._image(right))
        (self.same if ANSWERS[answer.lower()] else self.different).append(pair)
        if split is not None:
            self._split(pair, split, where)

    def _image(self, path: str) -> int:
        return self.images.setdefault(path, len(self.images))

    def _split(self, pair: tuple[int, int], name: str, where: str) -> None:
        name = ALIASES.get(name, name)
        check(name in ("", *SPLITS), f"{where} has the split '{name}': use {', '.join(SPLITS)}, or leave it empty")
        place = SPLITS.index(name) if name else UNKNOWN
        for image in pair:
            known = self.splits.setdefault(image, place)
            check(known == place, f"{where} puts an image into another split than an earlier line does")

    def finish(self, name: str, base: Path) -> Dataset:
        check(
            bool(self.same), f"'{self.file.name}' has no pair marked as the same: there is nothing to learn or to find"
        )
        both = {frozenset(pair) for pair in self.same} & {frozenset(pair) for pair in self.different}
        check(not both, f"'{self.file.name}' calls {len(both)} pairs both the same and different")
        count, paths = len(self.images), list(self.images)
        of_image: list[list[int]] = [[image] for image in range(count)]
        for number, pair in enumerate(dict.fromkeys(tuple(sorted(pair)) for pair in self.same), start=count):
            for image in pair:
                of_image[image].append(number)
        numbers = torch.full((count, max(map(len, of_image))), EMPTY)
        for image, own in enumerate(of_image):
            numbers[image, : len(own)] = torch.tensor(own)
        opposed = torch.tensor(self.different) if self.different else None
        splits = None
        if self.splits:
            splits = torch.tensor([self.splits[image] for image in range(count)])
        words = tuple(map(printable, paths))
        return Dataset(
            name,
            Files(base, StringColumn.of(paths)),
            torch.from_numpy(np.arange(count)),
            words,
            root=base,
            splits=splits,
            sets=LabelSets(numbers, words, opposed),
        )
