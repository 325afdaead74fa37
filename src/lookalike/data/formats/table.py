"""A table of images: CSV, TSV, or Parquet where pyarrow is installed.

The columns `path` and `label` are required, `category`, `split`, `role` and `group` optional, others are ignored. A
column `labels` instead of `label` holds several, such as `red|round`, or none. Where a row has no label,
`not_label` may hold classes that it does not belong to. The column `verdict` of `lookalike classify` tells its sure
answers from guesses, which are not learnt, nor are sure ones with a low `chance`; that of `lookalike discover` tells
what was found from what was known.
Rows are read one by one into columns: a million of them take seconds and a few hundred megabytes.
"""

import csv
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor

from lookalike.data.dataset import ORIGINS, ROLES, SPLITS, Dataset, Problem
from lookalike.data.images.source import Files
from lookalike.data.string_column import StringColumn
from lookalike.data.vocabulary import UNKNOWN, Vocabulary, numbered
from lookalike.errors import UserError, check
from lookalike.files import printable
from lookalike.label_sets import LabelSets

SEVERAL = "labels"  # the column that may hold several
OPTIONAL = ("category", "split", "role", "group")
NOT, VERDICT, CHANCE = "not_label", "verdict", "chance"
SAFE = 0.9  # the least chance of a sure label that is learnt unchecked: an index may promise as little as 60%
GUESSES = ("maybe", "unknown", "uncalibrated")  # verdicts of answers that nobody should learn from unchecked
FOUND = ("found", "joined")  # verdicts of discover: in a group that nobody named, or found in a known class
LEARNT = ("", "sure", "likely", "known", "named")  # other verdicts of ours; any further word is that of a person
GUESSED, NONE, BY_CLASSIFY = "guessed labels", "photos without a label", "labels given by classify"  # problems
UNSAFE = "sure labels less likely than 90%"
ALIASES = {"val": "validation", "valid": "validation", "training": "train"}
LONGEST_LINE = 1 << 20
KINDS = (".csv", ".tsv", ".parquet")
FORMULA = re.compile(r"'*[=+\-@\t\r]")  # what a spreadsheet runs, and what `guarded` makes of it


def table(path: str | Path, root: str | Path | None = None) -> Dataset:
    """The file at `path`, CSV, TSV or Parquet: columns path and label (category, split, role, group if you have them).

    Relative paths start at the table's own folder unless `root` is given; labels may be any text. With a column
    `labels` instead, `red|round` is two of them and an empty cell is none; images that share a label are alike. Rows
    that `lookalike classify` guessed are left out, as `problems`; write another verdict, such as checked, to keep them.
    """
    file = Path(path).expanduser()
    check(file.is_file(), f"there is no table '{file}': give a .csv, .tsv or .parquet file with columns path and label")
    check(file.suffix.lower() in KINDS, f"'{file.name}' is not a table: its name must end in {', '.join(KINDS)}")
    base = file.parent if root is None else Path(root).expanduser()
    columns = _Columns(file)
    for number, row in enumerate(_rows(file, columns), start=2):
        columns.add(number, row)
    return columns.finish(file.stem, base)


class _Columns:
    """The columns of a table while it is read."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.present: list[str] = []
        self.sets: list[list[str]] = []
        self.paths, self.ends = bytearray(), array("q", [0])
        self.names = {name: Vocabulary() for name in ("label", "category", "group")}
        self.further = False  # whether rows say more about their labels
        self.denied: list[tuple[str, str]] = []
        self.problems: list[Problem] = []
        self.fixed = {"split": array("b"), "role": array("b"), VERDICT: array("b")}
        self.places = {
            "split": _places(SPLITS) | {alias: SPLITS.index(name) for alias, name in ALIASES.items()},
            "role": _places(ROLES),
        }

    def header(self, names: Iterable[str]) -> list[int]:
        """The positions of our columns in a row."""
        given = [name.strip().lower() for name in names]
        place = {name: index for index, name in enumerate(given)}
        label = SEVERAL if SEVERAL in place and "label" not in place else "label"
        missing = [name for name in ("path", label) if name not in place]
        first_line = ", ".join(place) or "empty"
        check(
            not missing,
            f"'{self.file.name}' has no column {' and no column '.join(missing)}: its first line is {first_line}",
        )
        further = (*OPTIONAL, NOT, VERDICT) if label == "label" else OPTIONAL
        further = (*further, CHANCE) if VERDICT in place else further
        self.present = [name for name in ("path", label, *further) if name in place]
        check_once(self.file, [name for name in given if name in self.present])
        self.further = NOT in self.present or VERDICT in self.present
        return [place[name] for name in self.present]

    def add(self, number: int, row: list[str]) -> None:
        path, label = row[0], row[1]
        several = self.present[1] == SEVERAL
        if path and self.further:
            judged = self._judged(number, dict(zip(self.present, row, strict=True)))
            if judged is None:
                return
            label = judged
        if not path or not (label or several):
            missing = "label" if path else "path"
            raise UserError(f"'{self.file.name}' line {number} has no {missing}: every row needs a path and a label")
        self.paths += path.encode("utf-8", "surrogateescape")
        self.ends.append(len(self.paths))
        if several:
            self.sets.append([word.strip() for word in label.split("|") if word.strip()])
        else:
            self.names["label"].add(label)
        for name, value in zip(self.present[2:], row[2:], strict=True):
            if name in self.names:
                self.names[name].add(value)
            elif name in self.fixed:
                self.fixed[name].append(self._place(name, value, number))

    def _judged(self, number: int, cell: dict[str, str]) -> str | None:
        """The label of a row that says more about it; None where it is a guess."""
        label, verdict, path = cell["label"], cell.get(VERDICT, ""), printable(cell["path"])
        if verdict in GUESSES:
            self.problems.append(Problem(path, GUESSED if label else NONE, f"{verdict}: {label or 'no label'}"))
            return None
        if verdict == "sure" and label:
            safe = self._safe(number, cell.get(CHANCE, ""))
            self.problems.append(Problem(path, BY_CLASSIFY if safe else UNSAFE, f"it is surely {label}"))
            if not safe:
                return None
        denied = [name.strip() for name in cell.get(NOT, "").split("|") if name.strip()]
        if label or not denied:
            return label
        label = f"not {' or '.join(denied)} (line {number})"
        for name in denied:
            self.denied.append((label, name))
            self.names["label"].know(name)
        return label

    def _safe(self, number: int, chance: str) -> bool:
        """Whether a sure label is likely enough; earlier versions wrote no chances."""
        try:
            return not chance or float(chance) >= SAFE
        except ValueError:
            raise UserError(
                f"'{self.file.name}' line {number} has the chance '{chance}': "
                "write a number from 0 to 1, or leave it empty"
            ) from None

    def _place(self, kind: str, value: str, number: int) -> int:
        if kind == VERDICT:
            return _origin(value)
        place = self.places[kind].get(value.lower())
        if place is None:
            possible = ", ".join(SPLITS if kind == "split" else ROLES)
            raise UserError(
                f"'{self.file.name}' line {number} has the {kind} '{value}': use {possible}, or leave it empty"
            )
        return place

    def finish(self, name: str, base: Path) -> Dataset:
        check(
            len(self.ends) > 1 or not self.problems,
            f"'{self.file.name}' holds only guesses of lookalike classify: check them, and write checked as "
            "the verdict of the right ones",
        )
        check(len(self.ends) > 1, f"'{self.file.name}' has no rows: write one image per line below path,label")
        paths = StringColumn(np.frombuffer(bytes(self.paths), np.uint8), np.frombuffer(self.ends, np.int64))
        columns: dict[str, Any] = {}
        if self.present[1] == SEVERAL:
            labels, label_names, columns["sets"] = numbered_sets(self.sets)
        else:
            labels, label_names = self.names["label"].finish()
        if "category" in self.present:
            columns["categories"], columns["category_names"] = self.names["category"].finish()
        if "group" in self.present:
            columns["groups"] = self.names["group"].finish()[0]
        for kind in ("split", "role"):
            if kind in self.present:
                columns[f"{kind}s"] = _numbers(self.fixed[kind])
        if any(number != UNKNOWN for number in self.fixed[VERDICT]):
            columns["origins"] = _numbers(self.fixed[VERDICT])
        columns["denied"] = _numbers_of(self.denied, label_names)
        problems = tuple(self.problems)
        return Dataset(
            printable(name), Files(base, paths), labels, label_names, root=base, problems=problems, **columns
        )


def _numbers(column: "array[int]") -> Tensor:
    return torch.from_numpy(np.frombuffer(column, np.int8).astype(np.int64))


def _origin(verdict: str) -> int:
    """Where a label with this verdict comes from.

    >>> [_origin(verdict) for verdict in ("joined", "checked", "known", "")]
    [0, 1, -1, -1]
    """
    if verdict in FOUND:
        return ORIGINS.index("found")
    return UNKNOWN if verdict in LEARNT else ORIGINS.index("confirmed")


def _numbers_of(denied: list[tuple[str, str]], names: tuple[str, ...]) -> Tensor | None:
    """Pairs of classes by their numbers."""
    number = {name: place for place, name in enumerate(names)}
    pairs = [[number[printable(name)] for name in pair] for pair in denied]
    return torch.tensor(pairs) if pairs else None


def numbered_sets(rows: list[list[str]]) -> tuple[Tensor, tuple[str, ...], LabelSets | None]:
    """The number and the name of every row's set of labels, and the sets; None where every row has one label.

    >>> numbered_sets([["red", "round"], [], ["red"]])[:2]
    (tensor([1, 2, 0]), ('red', 'red|round', ''))
    """
    if all(len(row) == 1 for row in rows):
        return *numbered([row[0] for row in rows]), None
    kinds, sets = LabelSets.of([list(map(printable, row)) for row in rows]).kinds()
    return kinds, tuple(sets.texts()), sets


def _places(names: tuple[str, ...]) -> dict[str, int]:
    return {"": UNKNOWN} | {name: place for place, name in enumerate(names)}


def _rows(file: Path, columns: _Columns) -> Iterator[list[str]]:
    """The cells of our columns, stripped, in the order of `columns.present`."""
    lines = cells(file)
    order = columns.header(next(lines, []))
    width = max(order) + 1
    for number, row in enumerate(lines, start=2):
        if not any(row):
            continue
        check(len(row) >= width, f"'{file.name}' line {number} has {len(row)} cells instead of {width}")
        yield [row[place].strip() for place in order]


def check_once(file: Path, names: Iterable[str]) -> None:
    """Refuse two columns of one name, of which nobody could tell which counts."""
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    check(twice is None, f"'{file.name}' has two columns '{twice}': rename or remove one of them")


def cells(file: Path) -> Iterator[list[str]]:
    """Every row of a table as text, its header first."""
    return _parquet(file) if file.suffix.lower() == ".parquet" else _separated(file)


def guarded(cell: str) -> str:
    """A cell to be written that no spreadsheet takes for a formula; `cells` reads it as it was.

    >>> guarded("=1+1"), guarded("hen")
    ("'=1+1", 'hen')
    """
    return f"'{cell}" if FORMULA.match(cell) else cell


def _separated(file: Path) -> Iterator[list[str]]:
    separator = "\t" if file.suffix.lower() == ".tsv" else ","
    # utf-8-sig: spreadsheets begin a file with a byte-order mark
    with file.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as lines:
        try:
            for row in csv.reader(_short_lines(lines, file.name), delimiter=separator):
                yield [cell[1:] if cell[:1] == "'" and FORMULA.match(cell) else cell for cell in row]
        except csv.Error as error:
            raise UserError(f"'{file.name}' cannot be read as a table: {error}") from None


def _short_lines(lines: IO[str], name: str) -> Iterator[str]:
    """The lines of a file, as long as they are those of a table: one of gigabytes would fill the memory."""
    for number, line in enumerate(iter(lambda: lines.readline(LONGEST_LINE), ""), start=1):
        check(len(line) < LONGEST_LINE, f"'{name}' is not a table: line {number} has over {LONGEST_LINE:,} characters")
        yield line


def _parquet(file: Path) -> Iterator[list[str]]:
    try:
        from pyarrow import parquet
    except ImportError:
        raise UserError(f"'{file.name}' is a Parquet file: install pyarrow to read it, or save it as CSV") from None
    try:
        opened = parquet.ParquetFile(file)
    except (OSError, ValueError) as error:  # pyarrow's own are kinds of these
        raise UserError(f"'{file.name}' cannot be read as Parquet: {' '.join(str(error).split())}") from None
    names = opened.schema_arrow.names
    yield names
    for batch in opened.iter_batches():
        cells = [["" if value is None else str(value) for value in column.to_pylist()] for column in batch.columns]
        yield from (list(row) for row in zip(*cells, strict=True))
