"""What the official datasets have in common: where to get them, how the folder must look, how many rows belong.

A wrong count would make every published figure incomparable, so it is refused, with the names of what is missing.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from lookalike.data.dataset import Dataset, Problem
from lookalike.data.images.source import Files
from lookalike.data.string_column import StringColumn
from lookalike.errors import UserError, check


@dataclass(frozen=True)
class Official:
    """A published dataset: its title, where it comes from, a sketch of the unpacked folder."""

    title: str
    address: str
    layout: str

    def find(self, root: str | Path, *markers: str) -> Path:
        """The folder that holds one of the marker files: `root`, or a folder directly in it."""
        root = Path(root).expanduser()
        nearby = [root, *sorted(path for path in root.iterdir() if path.is_dir())] if root.is_dir() else []
        for place in nearby:
            if any((place / marker).exists() for marker in markers):
                return place
        raise UserError(
            f"no {self.title} in '{root}' (looked for {' or '.join(markers)}): get it from {self.address} and unpack "
            f"it so that the folder looks like {self.layout}"
        )

    def lines(self, file: Path, cells: int, header: int = 0) -> list[list[str]]:
        """The rows of a list file, each of `cells` cells; the first `header` lines are passed over."""
        check(file.is_file(), f"{self.title} lacks {file.name} in '{file.parent}': it must look like {self.layout}")
        rows = []
        for number, line in enumerate(file.read_text(encoding="utf-8", errors="surrogateescape").splitlines(), start=1):
            if number <= header or not line.strip():
                continue
            row = line.split(maxsplit=cells - 1)
            check(
                len(row) == cells, f"{self.title}: {file.name} line {number} has {len(row)} of {cells} cells: '{line}'"
            )
            rows.append(row)
        return rows

    def check_ids(self, file: str, ids: Iterable[int], total: int) -> None:
        """Names the ids that a list file of `total` rows, numbered from 1, lacks."""
        lacking = sorted(set(range(1, total + 1)) - set(ids))
        check(
            not lacking,
            f"{self.title}: {file} lacks {_some([str(id) for id in lacking])} of {total:,} rows: unpack it again",
        )

    def complete(self, dataset: Dataset, counts: Mapping[str, Sequence[tuple[int, int]]] | None) -> Dataset:
        """The dataset, if its files are there and its parts have the right (classes, images); else what is missing.

        With `counts` None (a part of the data, on purpose) missing files are dropped and listed in `problems`.
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
            "archive again, or say check_counts=False to use what is there",
        )
        return dataset

    def _check_part(self, dataset: Dataset, part: str, possible: Sequence[tuple[int, int]]) -> None:
        rows = dataset.where(role=part) if part in ("query", "gallery") else dataset.where(split=part)
        found = rows.present, len(rows)
        expected = " or ".join(f"{classes:,} classes with {images:,} images" for classes, images in possible)
        check(
            found in possible,
            f"{self.title}: {part} has {found[0]:,} classes with {found[1]:,} images where {expected} belong: the list "
            "files are not complete; unpack them again, or say check_counts=False to use what is there",
        )


def absent(images: Files) -> list[int]:
    """The rows whose file is not there. Every folder is listed once, which is faster than asking for every file."""
    known: dict[str, set[str]] = {}
    lost = []
    for row, path in enumerate(images.paths):
        place, name = os.path.split(path)
        if place not in known:
            try:
                known[place] = set(os.listdir(images.root / place))
            except OSError:
                known[place] = set()
        if name not in known[place]:
            lost.append(row)
    return lost


def files(root: Path, paths: Iterable[str]) -> Files:
    return Files(root, StringColumn.of(paths))


def split_at(first_test_class: int, classes: torch.Tensor) -> torch.Tensor:
    """The papers' split by class number: classes below `first_test_class` train (0), the rest test (2)."""
    return torch.where(classes < first_test_class, 0, 2)


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
