"""What the official data sets have in common: where to get them, the layout of the folder, the number of rows.

A wrong count would make every published figure incomparable, so it is refused, and what is missing is named.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from lookalike.data.dataset import Dataset, Problem
from lookalike.data.formats.folder import is_image, walk
from lookalike.data.images.source import Files
from lookalike.data.string_column import StringColumn
from lookalike.errors import UserError, check
from lookalike.files import read_regular

LARGEST = 1 << 28  # bytes of a list


@dataclass(frozen=True)
class Official:
    """A published data set: its title, where to get it, or what to search for, and a sketch of the unpacked folder."""

    title: str
    where: str
    layout: str

    def find(self, root: str | Path, *markers: str) -> Path:
        """The folder that holds one of the marker files: `root`, or a folder directly in it."""
        found = self.holding(root, *markers)
        if found is not None:
            return found
        raise UserError(
            f"there is no {self.title} in '{root}' (no {' or '.join(markers)}): {self.where}, and unpack it so that "
            f"the folder looks like {self.layout}"
        )

    def holding(self, root: str | Path, *markers: str) -> Path | None:
        """As `find`; None: there is no such folder."""
        return next((place for place in _places(root) if any((place / marker).exists() for marker in markers)), None)

    def lines(self, file: Path, cells: int, header: int = 0) -> list[list[str]]:
        """The rows of a list file, each of `cells` cells; the first `header` lines are skipped."""
        check(file.is_file(), f"{self.title} lacks {file.name} in '{file.parent}': it must look like {self.layout}")
        try:
            text = read_regular(file, LARGEST).decode("utf-8", "surrogateescape")
        except OSError as error:
            raise UserError(f"{self.title}: {file.name} cannot be read ({error.strerror}): unpack it again") from None
        rows = []
        for number, line in enumerate(text.splitlines(), start=1):
            if number <= header or not line.strip():
                continue
            row = line.split(maxsplit=cells - 1)
            check(
                len(row) == cells, f"{self.title}: {file.name} line {number} has {len(row)} of {cells} cells: '{line}'"
            )
            rows.append(row)
        return rows

    def check_ids(self, file: str, ids: Iterable[int], total: int) -> None:
        """Refuse a list file of `total` rows, numbered from 1, that lacks some of them."""
        lacking = sorted(set(range(1, total + 1)) - set(ids))
        check(
            not lacking,
            f"{self.title}: {file} lacks {_some([str(id) for id in lacking])} of {total:,} rows: unpack it again",
        )

    def complete(self, dataset: Dataset, counts: Mapping[str, Sequence[tuple[int, int]]] | None) -> Dataset:
        """The data set, if its files are there and its parts have the right counts of (classes, images).

        Without `counts` (a part of the data, on purpose) missing files are dropped and listed in `problems`.
        """
        assert isinstance(dataset.images, Files)
        lost = absent(dataset.images)
        names = [dataset.images.name(row) for row in lost]
        if counts is None:
            problems = tuple(Problem(name, "missing", "listed, but there is no such file") for name in names)
            keep = torch.ones(len(dataset), dtype=torch.bool)
            keep[lost] = False
            return replace(dataset.subset(keep), problems=dataset.problems + problems)
        for part, possible in counts.items():
            self._check_part(dataset, part, possible)
        check(
            not lost,
            f"{self.title}: {len(lost):,} of {len(dataset):,} listed images are missing: {_some(names)}: unpack the "
            "archive again, or set check_counts=False to use what is there",
        )
        return dataset

    def _check_part(self, dataset: Dataset, part: str, possible: Sequence[tuple[int, int]]) -> None:
        rows = dataset.where(role=part) if part in ("query", "gallery") else dataset.where(split=part)
        counts = rows.present, len(rows)
        expected = " or ".join(f"{classes:,} classes with {images:,} images" for classes, images in possible)
        check(
            counts in possible,
            f"{self.title}: {part} has {counts[0]:,} classes with {counts[1]:,} images instead of {expected}: the list "
            "files are not complete; unpack them again, or set check_counts=False to use what is there",
        )


def class_folders(root: str | Path) -> tuple[Path, list[tuple[str, str]]]:
    """The images of a mirror that has a folder per class, perhaps in train/ and test/: where they are, and each with
    the name of its class. Those halves are of every class, for classification, and mean nothing here."""
    for place in _places(root):
        halves = [half for half in ("train", "test") if (place / half).is_dir()] or [""]
        paths = [
            f"{half}/{file}".lstrip("/") for half in halves for file in walk(place / half, outside=[]) if is_image(file)
        ]
        rows = [(path, path.split("/")[-2]) for path in sorted(paths) if path.count("/") == (halves != [""]) + 1]
        if rows:
            return place, rows
    return Path(root), []


def _places(root: str | Path) -> list[Path]:
    """A folder, and those directly in it."""
    root = Path(root).expanduser()
    return [root, *sorted(path for path in root.iterdir() if path.is_dir())] if root.is_dir() else []


def absent(images: Files) -> list[int]:
    """The rows whose file is missing. Every folder is listed once, which is faster than looking up every file."""
    listed: dict[str, set[str]] = {}
    missing = []
    for row, path in enumerate(images.paths):
        folder, name = os.path.split(path)
        if folder not in listed:
            try:
                listed[folder] = set(os.listdir(images.root / folder))
            except OSError:
                listed[folder] = set()
        if name not in listed[folder]:
            missing.append(row)
    return missing


def files(root: Path, paths: Iterable[str]) -> Files:
    return Files(root, StringColumn.of(paths))


def split_at(first_test_class: int, classes: torch.Tensor) -> torch.Tensor:
    """The papers' split by class number: classes below `first_test_class` train (0), the rest test (2)."""
    return torch.where(classes < first_test_class, 0, 2)


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
