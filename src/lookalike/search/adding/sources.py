"""What can be added to an index: folders, tables, single images, globs, data sets, and vectors made elsewhere.

Every image becomes an `Entry`: an item, and a way to read its picture. A label is the folder above an image, the label
column of a table, or none; further folders and columns are metadata for filters.
"""

import glob
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lookalike import data
from lookalike.data import Dataset
from lookalike.data.dataset import ROLES, SPLITS
from lookalike.data.formats.folder import is_image, walk, why_not_followed
from lookalike.data.formats.table import KINDS, cells, check_once
from lookalike.data.images.source import Files
from lookalike.errors import check
from lookalike.files import printable
from lookalike.runs import RunFolder
from lookalike.runs.embeddings import read_embeddings
from lookalike.runs.finished import fitting, read_toml
from lookalike.search.filters import as_number
from lookalike.search.items import Item, Value

RESERVED = ("id", "path", "label", "root", "added")
Source = str | Path | Dataset | Sequence[str | Path]


@dataclass(frozen=True)
class Entry:
    """An image that may be added. `pixels` reads it where there is no file; `line`: of the table that names it."""

    item: Item
    pixels: Callable[[], Any] | None = None
    line: int | None = None


@dataclass(frozen=True)
class Listing:
    """Everything that a source names. `root` is the place that a later look compares with."""

    root: str
    entries: Sequence[Entry]
    skipped: Sequence[tuple[str, str]] = ()  # what is not read at all, and why
    several: bool = False  # images have several labels, or none: an item's label is all of them in one word


def listing(source: Source, texts: Collection[str] = ()) -> Listing:
    """The images that a source names, in the order of their names; columns in `texts` are never read as numbers."""
    if isinstance(source, Dataset):
        return _of_dataset(source, source.name)
    if isinstance(source, list | tuple):
        return _of_files([Path(path).expanduser() for path in source], "a list of files")
    text = str(source)
    path = Path(text).expanduser()
    if RunFolder(path).test.is_file() and RunFolder(path).recipe.is_file():
        return _of_run(RunFolder(path))
    if path.is_dir() and data.layout_of(path) == "folder":
        return _of_folder(path)
    if path.is_file():
        return _of_table(path, texts) if path.suffix.lower() in KINDS else _of_files([path], str(path.resolve()))
    if glob.has_magic(text) and not path.exists():
        matches = sorted(Path(match) for match in glob.glob(str(path), recursive=True) if is_image(match))
        check(bool(matches), f"no image matches '{text}': check the pattern")
        return _of_files(matches, text)
    return _of_dataset(data.load(source), text)  # type: ignore[arg-type]


def _of_folder(root: Path) -> Listing:
    outside: list[str] = []
    names = sorted(name for name in walk(root, outside=outside) if is_image(name))
    skipped = [(printable(name), why_not_followed(root)) for name in sorted(outside)]
    check(
        bool(names) or not skipped,
        f"there are no images below '{root}', and '{root}/{(outside or [''])[0]}' is not "
        f"read: {why_not_followed(root)}",
    )
    check(bool(names), f"there are no images below '{root}': give a folder of photos")
    place = root.resolve()
    entries = [_file_entry(place / name, f"{place.name}/{name}", place, name) for name in names]
    return Listing(printable(str(place)), entries, skipped)


def _file_entry(path: Path, id_: str, root: Path, name: str) -> Entry:
    folders = name.split("/")[:-1]
    label = "/".join(folders) or None
    levels = (
        {f"folder_{level}": printable(part) for level, part in enumerate(folders, start=1)} if len(folders) > 1 else {}
    )
    return Entry(
        Item(printable(id_), str(path), None if label is None else printable(label), levels, printable(str(root)))
    )


def _of_files(paths: Sequence[Path], name: str) -> Listing:
    root = printable(name)
    for path in paths:
        check(path.is_file(), f"there is no image '{path}': check its name")
    return Listing(
        root, [Entry(Item(printable(str(path.resolve())), str(path.resolve()), root=root)) for path in paths]
    )


def _of_table(file: Path, texts: Collection[str]) -> Listing:
    lines = cells(file)
    header = [name.strip() for name in next(lines, [])]
    lower = [name.lower() for name in header]
    check("path" in lower, f"'{file.name}' has no column path: its first line is {', '.join(header) or 'empty'}")
    check_once(file, [name for name in lower if name])
    rows = {number: row for number, row in enumerate(lines, start=2) if any(row)}
    for number, row in rows.items():
        check(
            len(row) == len(header), f"'{file.name}' line {number} has {len(row)} cells, its first line {len(header)}"
        )
    column = "labels" if "label" not in lower and "labels" in lower else "label"
    own = {place: name for place, name in enumerate(header) if name.lower() not in RESERVED and name}
    typed = {name: _typed([row[place].strip() for row in rows.values()], name in texts) for place, name in own.items()}
    root = printable(str(file.resolve()))
    entries = []
    for place, (number, row) in enumerate(rows.items()):
        cell = dict(zip(lower, (value.strip() for value in row), strict=True))
        check(bool(cell["path"]), f"'{file.name}' line {number} has no path: every row names an image")
        path = Path(os.path.abspath(file.parent / cell["path"]))
        columns = {name: values[place] for name, values in typed.items()}
        id_ = cell.get("id") or f"{file.stem}/{cell['path']}"
        item = Item(printable(id_), str(path), printable(cell.get(column, "")) or None, columns, root)
        entries.append(Entry(item, line=number))
    sets = column == "labels" and any("|" in (entry.item.label or "|") for entry in entries)
    return Listing(root, entries, several=sets)


def _typed(values: Sequence[str], as_texts: bool) -> list[Value]:
    """A column as numbers where every value is one, else as text; an empty cell is missing."""
    numbers = [as_number(value) for value in values]
    if not as_texts and all(number is not None or not value for number, value in zip(numbers, values, strict=True)):
        return list(numbers)
    return [printable(value) or None for value in values]


def _of_dataset(dataset: Dataset, name: str) -> Listing:
    root = str(Path(name.partition("=")[2] or name).expanduser().resolve()) if dataset.root is not None else name
    return Listing(printable(root), list(_rows(dataset, printable(root))), several=dataset.sets is not None)


def _of_run(run: RunFolder) -> Listing:
    """The images of the classes that a run never saw in training."""
    with fitting(f"'{run.path}'"):
        source = read_toml(run.recipe).get("data", {}).get("source")
    check(bool(source), f"the run in '{run.path}' was made from a dataset in memory: give the images themselves")
    dataset = data.load(source)
    arrays = read_embeddings(run.test)
    names = {str(name) for column in ("paths", "gallery_paths") for name in arrays.get(column, ())}
    rows = [row for row in range(len(dataset)) if dataset.images.name(row) in names]
    place = printable(str(run.path.resolve()))
    return Listing(place, list(_rows(dataset.subset(rows), place)), several=dataset.sets is not None)


def _rows(dataset: Dataset, root: str) -> Iterator[Entry]:
    for row in range(len(dataset)):
        columns: dict[str, Value] = {}
        if dataset.categories is not None and int(dataset.categories[row]) >= 0:
            columns["category"] = dataset.category_names[int(dataset.categories[row])]
        for kind, column, names in (("split", dataset.splits, SPLITS), ("role", dataset.roles, ROLES)):
            if column is not None and int(column[row]) >= 0:
                columns[kind] = names[int(column[row])]
        label = printable(dataset.label_names[int(dataset.labels[row])])
        id_ = printable(f"{dataset.name}/{dataset.images.name(row)}")
        if isinstance(dataset.images, Files):
            path = os.path.abspath(dataset.images.path(row))
            yield Entry(Item(id_, path, label, columns, root))
        else:
            yield Entry(Item(id_, None, label, columns, root), lambda row=row: dataset.images.open(row).decode())  # type: ignore[misc]
