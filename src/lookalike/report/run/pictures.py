"""Pictures of test rows, as small squares: from the training code, from the run folder, or from the files themselves.

Rows count queries first, then the gallery. What is fetched once through `images` is kept in thumbnails.npz, so that the
page can be written again when the images are gone.
"""

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lookalike.data.images.decode import Encoded, resize
from lookalike.data.images.unreadable import UnreadableError
from lookalike.errors import check
from lookalike.report.run.reading import Run

SIZE = 64  # pixels of a side at most
CELL = 48  # of a picture in the sheet of the map
COLUMNS = 32  # of that sheet
QUALITY = 72
Pixels = NDArray[np.uint8]
Images = Callable[[int], Any]


def collect(run: Run, rows: Iterable[int], images: Images | None) -> dict[int, Pixels]:
    """The pictures of some rows; a row whose picture cannot be had is left out."""
    wanted = sorted(set(rows))
    file = run.folder / "thumbnails.npz"
    if images is not None:
        found = _gathered(wanted, images)
        if found:
            np.savez_compressed(file, rows=np.array(list(found), np.int64), pixels=np.stack(list(found.values())))
        return found
    kept = _kept(file)
    missing = [row for row in wanted if row not in kept]
    return {row: kept[row] for row in wanted if row in kept} | _gathered(missing, _reader(run))


def _gathered(rows: list[int], images: Images) -> dict[int, Pixels]:
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
    """The middle of a picture (h × w × 3), no larger than `at_most`.

    >>> square(np.zeros((100, 300, 3), np.uint8), 64).shape
    (64, 64, 3)
    """
    fits = picture.ndim == 3 and picture.shape[2] == 3
    check(fits, f"a picture must be height × width × 3, not of shape {picture.shape}: what does images(row) give?")
    height, width = picture.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    return _sized(picture[top : top + side, left : left + side], min(side, at_most))


def _sized(picture: Pixels, side: int) -> Pixels:
    pixels = torch.from_numpy(np.array(picture))  # a copy: torch warns about read-only ones
    pixels = pixels.permute(2, 0, 1)
    return np.ascontiguousarray(resize(pixels, side, side).permute(1, 2, 0).numpy())


def _kept(file: Path) -> dict[int, Pixels]:
    if not file.is_file():
        return {}
    with np.load(file, allow_pickle=False) as content:
        return dict(zip(content["rows"].tolist(), content["pixels"], strict=True))


def _reader(run: Run) -> Images:
    """Pictures from the files that test.npz names, absolute or below the data's folder."""
    source = str((run.result.get("data") or {}).get("source") or "")
    folders = [Path(source.partition("=")[2] or source), run.folder]

    def read(row: int) -> Pixels:
        if not run.test.paths or not run.test.paths[row]:
            raise FileNotFoundError(row)
        places = [folder / run.test.paths[row] for folder in folders]
        path = next((place for place in places if place.is_file()), places[0])
        image = Encoded(path.read_bytes())
        return image.decode(SIZE / min(image.height, image.width)).permute(1, 2, 0).numpy()

    return read


def data_address(picture: Pixels) -> str:
    """The picture inside its own address, so that no file is needed."""
    from PIL import Image

    file = BytesIO()
    Image.fromarray(picture).save(file, "WEBP", quality=QUALITY)
    return "data:image/webp;base64," + b64encode(file.getvalue()).decode()


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
