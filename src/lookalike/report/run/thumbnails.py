"""Pictures of test rows as small squares: from the training code, from the run's folder, or from the files themselves.

Rows count queries first, then the gallery. What `images` returned once is kept in thumbnails.npz, so that the page can
be written again when the images are gone.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lookalike.data.images.decode import Encoded, resize
from lookalike.errors import check
from lookalike.files import read_arrays, whole_file
from lookalike.image_files import UnreadableError
from lookalike.image_files import read as read_image
from lookalike.report.charts.drawing import Pixels
from lookalike.report.charts.svg import data_address
from lookalike.report.run.record import RunRecord

SIZE = 64  # pixels of a side at most
CELL = 48  # of a picture in the sheet of the map
COLUMNS = 32  # of that sheet
Images = Callable[[int], Any]


def thumbnails(
    run: RunRecord, rows: Iterable[int], images: Images | None, photos: Path | None = None
) -> dict[int, Pixels]:
    """The pictures of some rows; a row whose picture cannot be read is left out."""
    needed = sorted(set(rows))
    file = run.folder.thumbnails
    if images is not None:
        squares = _squares(needed, images)
        if squares:
            with whole_file(file) as stream:
                np.savez_compressed(stream, rows=np.array(list(squares)), pixels=np.stack(list(squares.values())))
        return squares
    saved = _saved(file)
    missing = [row for row in needed if row not in saved]
    return {row: saved[row] for row in needed if row in saved} | _squares(missing, _reader(run, photos))


def _squares(rows: list[int], images: Images) -> dict[int, Pixels]:
    """All of one size: that of the largest, but no more than SIZE."""
    squares: dict[int, Pixels] = {}
    for row in rows:
        try:
            squares[row] = square(np.asarray(images(row), np.uint8), SIZE)
        except (OSError, UnreadableError):
            continue
    side = max((len(picture) for picture in squares.values()), default=0)
    return {row: _sized(picture, side) for row, picture in squares.items()}


def square(picture: Pixels, at_most: int) -> Pixels:
    """The middle of a picture (height × width × 3), no larger than `at_most`.

    >>> square(np.zeros((100, 300, 3), np.uint8), 64).shape
    (64, 64, 3)
    """
    fits = picture.ndim == 3 and picture.shape[2] == 3
    check(
        fits,
        f"a picture must be height × width × 3, not of shape {picture.shape}: let images(row) return such an array",
    )
    height, width = picture.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return _sized(picture[top : top + side, left : left + side], min(side, at_most))


def _sized(picture: Pixels, side: int) -> Pixels:
    pixels = torch.from_numpy(np.array(picture)).permute(2, 0, 1)  # a copy: torch warns about read-only ones
    return np.ascontiguousarray(resize(pixels, side, side).permute(1, 2, 0).numpy())


def _saved(file: Path) -> dict[int, Pixels]:
    if not file.is_file():
        return {}
    try:
        content = read_arrays(file)
        return dict(zip(content["rows"].tolist(), content["pixels"], strict=True))
    except (OSError, ValueError, KeyError):
        return {}  # damaged: the pictures are read from their own files


def _reader(run: RunRecord, photos: Path | None) -> Images:
    """Pictures from the files that test.npz names, if they are below the run's folder or below `photos`.

    A run may come from anywhere: its recipe and test.npz name any file of the reader, and a page is passed on.
    """
    folders = [folder.resolve() for folder in (photos, run.folder.path) if folder is not None]

    def read(row: int) -> Pixels:
        places = [(folder, (folder / run.test.path(row)).resolve()) for folder in folders if run.test.path(row)]
        path = next((place for folder, place in places if place.is_relative_to(folder) and place.is_file()), None)
        if path is None:
            raise FileNotFoundError(row)
        image = Encoded(read_image(path))
        return image.decode(SIZE / min(image.height, image.width)).permute(1, 2, 0).numpy()

    return read


def sheet(pictures: Mapping[int, Pixels], rows: list[int]) -> tuple[str, dict[int, int]]:
    """All pictures of `rows` on one sheet, and the cell of each: one address instead of a thousand."""
    have = [row for row in rows if row in pictures]
    if not have:
        return "", {}
    lines = -(-len(have) // COLUMNS)
    paper = np.full((lines * CELL, min(COLUMNS, len(have)) * CELL, 3), 255, np.uint8)
    for cell, row in enumerate(have):
        top, left = cell // COLUMNS * CELL, cell % COLUMNS * CELL
        paper[top : top + CELL, left : left + CELL] = _sized(pictures[row], CELL)
    return data_address(paper), {row: cell for cell, row in enumerate(have)}
