"""The decoded cache: every image decoded once and reduced to a short side, in one memory-mapped file of bytes.

Reading a crop from it needs no decoding. Its key is the content of the files and the short side, so a changed photo
makes a new cache and a moved folder does not. Files that cannot be read are left out and listed.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from pathlib import Path

import numpy as np
import torch

from lookalike.cache import loaded
from lookalike.data.dataset import Dataset, Problem
from lookalike.data.images.decode import resize
from lookalike.data.images.digests import DIGEST, content_digests, pixel_digest
from lookalike.data.images.source import DecodedImage, Files
from lookalike.errors import check
from lookalike.files import read_arrays
from lookalike.image_files import UnreadableError
from lookalike.ordered_map import in_order
from lookalike.progress import Progress

VERSION = 1
Build = Callable[[Path], None]


@dataclass(frozen=True)
class Decoded:
    """Images in the cache, of different widths and heights."""

    pixels: np.ndarray  # all bytes, memory-mapped
    begins: np.ndarray
    sizes: np.ndarray  # n × 2: height, width
    names: Files
    digests: np.ndarray  # n × 16, of the pixels
    short_side: int
    checked: np.ndarray  # n: whether this process has compared the pixels with their digest

    def __len__(self) -> int:
        return len(self.begins)

    def name(self, row: int) -> str:
        return self.names.name(row)

    def open(self, row: int) -> DecodedImage:
        height, width = (int(side) for side in self.sizes[row])
        begin = int(self.begins[row])
        pixels = self.pixels[begin : begin + height * width * 3].reshape(height, width, 3)
        if not self.checked[row]:
            self._check(row, pixels)
        return DecodedImage(pixels)

    def _check(self, row: int, pixels: np.ndarray) -> None:
        """Where the disk has changed a bit, the file is decoded again, for this process alone."""
        if pixel_digest(pixels) != self.digests[row].tobytes():
            again = _one(self.names, row, self.short_side)
            if isinstance(again, UnreadableError):
                raise again
            pixels[...] = again  # the map is private to this process
        self.checked[row] = True

    def take(self, rows: np.ndarray) -> "Decoded":
        columns = (self.begins[rows], self.sizes[rows], self.names.take(rows), self.digests[rows])
        return Decoded(self.pixels, *columns, self.short_side, self.checked[rows])

    def __getstate__(self) -> dict[str, object]:
        """A worker process maps the file again instead of receiving its content."""
        return self.__dict__ | {"pixels": getattr(self.pixels, "filename", self.pixels)}

    def __setstate__(self, state: dict[str, object]) -> None:
        if isinstance(state["pixels"], str | Path):
            state["pixels"] = np.memmap(state["pixels"], np.uint8, mode="c")
        self.__dict__.update(state)


def decoded(dataset: Dataset, short_side: int = 256, *, threads: int = 2, progress: Progress | None = None) -> Dataset:
    """The data set with its images in the decoded cache, which is built first where it is missing.

    Images smaller than `short_side` keep their size, unreadable files become `problems`. A data set in memory is
    returned as it is.
    """
    check(short_side > 0, f"short_side must be positive, not {short_side}")
    images = dataset.images
    if not isinstance(images, Files):
        return dataset
    key = _key(images, short_side)
    build: Build = lambda folder: _write(folder, images, short_side, threads, progress)  # noqa: E731
    source, problems = loaded("decoded", key, build, lambda folder: _load(folder, images, short_side))
    good = torch.from_numpy(source.sizes[:, 0] > 0)
    return replace(dataset, images=source, problems=dataset.problems + problems).subset(good)


def _load(folder: Path, images: Files, short_side: int) -> tuple[Decoded, tuple[Problem, ...]]:
    """The pixels themselves are checked image by image, when they are read: a large cache takes minutes to read."""
    index = read_arrays(folder / "index.npz")
    begins, sizes, digests, problems = (index[name] for name in ("begins", "sizes", "digests", "problems"))
    pixels = np.memmap(folder / "pixels.bin", np.uint8, mode="c")
    if len(pixels) != 1 + int(3 * sizes.astype(np.int64).prod(1).sum()):
        raise ValueError(f"{folder} does not hold as many pixels as it should")
    source = Decoded(pixels, begins, sizes, images, digests, short_side, np.zeros(len(sizes), bool))
    return source, tuple(Problem(**problem) for problem in json.loads(str(problems)))


def _key(images: Files, short_side: int) -> str:
    """Digest of contents, names and settings. Contents are read once; then names and times of change stand for them."""
    content = blake2b(content_digests(images).tobytes(), digest_size=16).hexdigest()
    names = "\n".join(images.paths).encode("utf-8", "surrogateescape")
    return blake2b(f"{VERSION} {short_side} {content} ".encode() + names, digest_size=16).hexdigest()


def _write(folder: Path, images: Files, short_side: int, threads: int, progress: Progress | None) -> None:
    sizes, digests = np.zeros((len(images), 2), np.int32), np.zeros((len(images), DIGEST), np.uint8)
    problems = []
    with (folder / "pixels.bin").open("wb") as file:
        file.write(b"\0")  # a file of no bytes cannot be mapped
        for row, result in enumerate(in_order(lambda row: _one(images, row, short_side), len(images), threads)):
            if isinstance(result, UnreadableError):
                problems.append(Problem(images.name(row), result.kind, result.detail))
            else:
                sizes[row] = result.shape[:2]
                digests[row] = np.frombuffer(pixel_digest(result), np.uint8)
                file.write(result.tobytes())
            if progress is not None:
                progress(row + 1, len(images))
    bytes_each = 3 * sizes.astype(np.int64).prod(1)
    begins = 1 + np.concatenate([np.zeros(1, np.int64), np.cumsum(bytes_each)[:-1]])
    listed = json.dumps([asdict(problem) for problem in problems])
    np.savez(folder / "index.npz", begins=begins, sizes=sizes, digests=digests, problems=np.array(listed))


def _one(images: Files, row: int, short_side: int) -> np.ndarray | UnreadableError:
    try:
        picture = images.open(row)
        shorter = min(picture.height, picture.width)
        if shorter <= short_side:
            image = picture.decode()
        else:
            height, width = (int(short_side * side / shorter) for side in (picture.height, picture.width))
            image = resize(picture.decode(short_side / shorter), height, width)
    except UnreadableError as error:
        return error
    return image.permute(1, 2, 0).contiguous().numpy()
