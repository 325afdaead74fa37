"""A folder of photos: the folder of an image is its class.

`root/class/a.jpg`, `root/category/class/a.jpg`, and either of them below `train`, `val`, `test`, `query` or `gallery`.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lookalike.data.dataset import ROLES, SPLITS, Dataset, Problem
from lookalike.data.formats.arrays import positions
from lookalike.data.images.source import Files
from lookalike.data.string_column import StringColumn
from lookalike.data.vocabulary import numbered
from lookalike.errors import check
from lookalike.files import printable

JPEG = frozenset(("jpg", "jpeg", "jpe", "jfif", "mpo"))
RASTER = frozenset(
    (
        "png",
        "webp",
        "bmp",
        "gif",
        "tif",
        "tiff",
        "ppm",
        "pgm",
        "pbm",
        "pnm",
        "jp2",
        "j2k",
        "tga",
        "ico",
        "avif",
        "heic",
        "heif",
    )
)
EXTENSIONS = JPEG | RASTER
# names of folders that hold one part of the data: (split, role)
PARTS = {
    "train": ("train", ""),
    "training": ("train", ""),
    "val": ("validation", ""),
    "valid": ("validation", ""),
    "validation": ("validation", ""),
    "test": ("test", ""),
    "query": ("test", "query"),
    "gallery": ("test", "gallery"),
}


def folder(root: str | Path) -> Dataset:
    """Photos in folders, `root/class/*.jpg` or `root/category/class/*.jpg`, also below train/val/test/query/gallery.

    Hidden files are ignored, and names are sorted. Images outside class folders are listed in `problems`, as are links
    that lead out of `root`: those are not followed (see `linked_folder`).
    """
    return _folder(root)


def linked_folder(root: str | Path) -> Dataset:
    """The same, for a `root` whose links lead out of it and may be trusted: they are followed, no folder twice."""
    return _folder(root, follow=True)


def _folder(root: str | Path, follow: bool = False) -> Dataset:
    root = Path(root).expanduser()
    check(root.exists(), f"there is no folder '{root}': give the folder that holds one folder of images per class")
    check(root.is_dir(), f"'{root}' is a file: give a folder with one folder of images per class, or a .csv table")
    closed: list[str] = []
    outside: list[str] = []
    images = sorted(file for file in walk(root, closed, None if follow else outside) if is_image(file))
    loose = [file for file in images if "/" not in file]
    images = [file for file in images if "/" in file]
    check(
        bool(images),
        f"there are no images in class folders below '{root}' ({len(loose)} are in no class folder"
        + (f", {len(outside)} links lead out of it: linked_folder={root} follows them" if outside else "")
        + "): put them into folders such as class/photo.jpg",
    )
    problems = [Problem(printable(file), "no class", "it is in no class folder and is not used") for file in loose]
    problems += [Problem(printable(place), "link", why_not_followed(root)) for place in sorted(outside)]
    problems += [Problem(printable(place), "closed folder", "reading this folder is not permitted") for place in closed]
    paths = Files(root, StringColumn.of(images))
    return Dataset(printable(root.resolve().name), paths, root=root, problems=tuple(problems), **_columns(images))


def is_image(file: str) -> bool:
    """Whether the ending of its name says so (`audit` compares it with the content)."""
    return Path(file).suffix[1:].lower() in EXTENSIONS


def why_not_followed(root: Path) -> str:
    return f"it is a link that leads out of the folder and is not followed: linked_folder={root} follows it"


def walk(root: Path, closed: list[str] | None = None, outside: list[str] | None = None) -> Iterator[str]:
    """All files that are not hidden, as paths relative to `root`; no folder is entered twice, even through links.

    Folders that cannot be read are added to `closed`. Links that lead out of `root` are added to `outside` and not
    followed; without that list they are followed.
    """
    entered, base = set(), os.path.realpath(root)
    waiting = [""]
    while waiting:
        below = waiting.pop()
        real = os.path.realpath(root / below)
        if real in entered:
            continue
        entered.add(real)
        try:
            entries = sorted(filter(_shown, os.scandir(root / below)), key=lambda entry: entry.name)
        except OSError:
            if closed is not None:
                closed.append(below)
            continue
        for entry in entries:
            path = f"{below}/{entry.name}" if below else entry.name
            if outside is not None and entry.is_symlink() and not _within(base, entry.path):
                outside.append(path)
            elif _is_folder(entry):
                waiting.append(path)
            else:
                yield path


def _shown(entry: os.DirEntry[str]) -> bool:
    return not entry.name.startswith(".") and entry.name != "__MACOSX"


def _within(base: str, path: str) -> bool:
    return os.path.commonpath([base, os.path.realpath(path)]) == base


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _columns(files: list[str]) -> dict[str, Any]:
    """Labels from the folder names; categories, splits and roles if the folders are nested that way."""
    folders = [file.split("/")[:-1] for file in files]
    columns: dict[str, Any] = {}
    # a part folder holds class folders: with images directly in it, `test` is a class
    if all(parts[0].lower() in PARTS and len(parts) > 1 for parts in folders):
        kinds = [PARTS[parts[0].lower()] for parts in folders]
        columns["splits"] = positions("split", [split for split, _ in kinds], SPLITS)
        if any(role for _, role in kinds):
            columns["roles"] = positions("role", [role for _, role in kinds], ROLES)
        folders = [parts[1:] for parts in folders]
    columns["labels"], columns["label_names"] = numbered(["/".join(parts) for parts in folders])
    if any(len(parts) > 1 for parts in folders):
        categories = numbered([parts[0] if len(parts) > 1 else "" for parts in folders])
        columns["categories"], columns["category_names"] = categories
    return columns
