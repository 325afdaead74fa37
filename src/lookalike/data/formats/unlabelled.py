"""Images without labels: one file, a pattern such as photos/*.jpg, or a folder without class folders.

They form a data set of one class whose name is empty.
"""

import glob
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from lookalike.data.dataset import Dataset, Problem
from lookalike.data.formats.folder import is_image, walk, why_not_followed
from lookalike.data.images.source import Files
from lookalike.data.string_column import StringColumn
from lookalike.errors import check
from lookalike.files import printable

NO_LABEL = ("",)  # the label names of such a data set


def unlabelled(source: str | Path) -> Dataset | None:
    """The images that the source names; None where it names anything else, such as class folders or a table."""
    path = Path(source).expanduser()
    if path.is_file() and is_image(path.name):
        return _of_files(path.stem, [path])
    if path.is_dir():
        outside: list[str] = []
        names = [name for name in walk(path, outside=outside) if is_image(name)]
        if not names or any("/" in name for name in names):
            return None
        images = _of_files(path.resolve().name, [path / name for name in sorted(names)])
        links = (Problem(printable(name), "link", why_not_followed(path)) for name in sorted(outside))
        return replace(images, problems=tuple(links))
    if glob.has_magic(str(source)) and "=" not in str(source) and not path.exists():
        matches = sorted(glob.glob(str(path), recursive=True))
        files = [Path(match) for match in matches if is_image(match) and Path(match).is_file()]
        check(bool(files), f"no image matches '{source}': check the pattern")
        return _of_files(str(source), files)
    return None


def _of_files(name: str, files: Sequence[Path]) -> Dataset:
    paths = StringColumn.of(str(file.absolute()) for file in files)
    return Dataset(name, Files(Path("/"), paths), torch.zeros(len(files), dtype=torch.int64), NO_LABEL)
