"""One pass over all images for the audit: is it readable, is its name right, its digest, perceptual hash and thumbnail.

The perceptual hash is the sign of the 8 × 8 lowest frequencies of a 32 × 32 grey thumbnail around their median (Zauner:
Implementation and Benchmarking of Perceptual Image Hash Functions, 2010): 64 bits that survive resizing and
compression.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8, UInt64
from torch import Tensor
from torch.nn.functional import avg_pool2d

from lookalike.data.dataset import Dataset, Problem
from lookalike.data.images.decode import Encoded, resize
from lookalike.data.images.source import DecodedImage, Files, Picture, Source
from lookalike.image_files import UnreadableError, read
from lookalike.ordered_map import in_order
from lookalike.progress import Progress

THUMB = 32
FLAT = 8.0  # grey levels of deviation: less than that is noise and must not be amplified into structure
MAGIC = {  # the first bytes of a format -> the endings its files may have
    b"\xff\xd8": ("jpg", "jpeg", "jpe", "jfif", "mpo"),
    b"\x89PNG": ("png",),
    b"GIF8": ("gif",),
    b"BM": ("bmp",),
    b"II*\x00": ("tif", "tiff"),
    b"MM\x00*": ("tif", "tiff"),
    b"RIFF": ("webp",),
}
Open = Callable[[int], Picture]


@dataclass(frozen=True)
class Scan:
    """One row per image; unreadable images have zeros and a problem."""

    readable: np.ndarray
    digests: UInt8[np.ndarray, "n 16"]
    hashes: UInt64[np.ndarray, " n"]
    shapes: Float[np.ndarray, "n 256"]  # thumbnails of 16 × 16, without mean and contrast, of length at most 1
    problems: tuple[Problem, ...]
    mirrored: UInt64[np.ndarray, " n"] = field(
        default_factory=lambda: np.zeros(0, np.uint64)
    )  # hashes of mirror images


def scan(
    dataset: Dataset, *, decoded: Dataset | None = None, threads: int = 2, progress: Progress | None = None
) -> Scan:
    """Read every image once. Nothing stops the scan: a file that cannot be read is a problem in the list.

    `decoded` is the same data set from the decoded cache: then no image is decoded again.
    """
    cached = None if decoded is None else _cached(dataset, decoded)
    count, problems = len(dataset), []
    digests, thumbs = np.zeros((count, 16), np.uint8), np.zeros((count, THUMB, THUMB), np.uint8)
    readable = np.zeros(count, bool)
    for row, (digest, thumb, problem) in enumerate(
        in_order(lambda row: _examine(dataset.images, row, cached), count, threads)
    ):
        digests[row] = np.frombuffer(digest, np.uint8)
        if thumb is not None:
            thumbs[row], readable[row] = thumb, True
        if problem is not None:
            problems.append(Problem(dataset.images.name(row), *problem))
        if progress is not None:
            progress(row + 1, count)
    hashes, mirrored = perceptual_hashes(thumbs), perceptual_hashes(np.ascontiguousarray(thumbs[:, :, ::-1]))
    return Scan(readable, digests, hashes, shapes(thumbs), tuple(problems), mirrored)


def _cached(dataset: Dataset, decoded: Dataset) -> Open:
    """How to open an image of the data set in the cache, which has none of the unreadable ones."""
    lost = {problem.path: problem for problem in decoded.problems[len(dataset.problems) :]}
    rows = [row for row in range(len(dataset)) if dataset.images.name(row) not in lost]
    place = dict(zip(rows, range(len(decoded)), strict=True))

    def open_cached(row: int) -> Picture:
        if row not in place:
            problem = lost[dataset.images.name(row)]
            raise UnreadableError(problem.kind, problem.detail)
        return decoded.images.open(place[row])

    return open_cached


def _examine(images: Source, row: int, cached: Open | None) -> tuple[bytes, np.ndarray | None, tuple[str, str] | None]:
    """Digest, thumbnail and problem of one image."""
    digest = bytes(16)
    try:
        picture: Picture
        if isinstance(images, Files):
            data = read(images.path(row))
            digest = _digest(data)
            picture = Encoded(data) if cached is None else cached(row)
            problem = wrong_name(images.name(row), data)
        else:
            picture, problem = images.open(row), None
            digest = _digest(picture.array.tobytes()) if isinstance(picture, DecodedImage) else digest
        return digest, _thumb(picture), problem
    except UnreadableError as error:
        return digest, None, (error.kind, error.detail)


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def _thumb(picture: Picture) -> np.ndarray:
    scale = THUMB / min(picture.height, picture.width)
    small = resize(picture.decode(min(1.0, 2 * scale)), THUMB, THUMB)
    grey = (small.permute(1, 2, 0).float() @ torch.tensor([0.299, 0.587, 0.114])).round()
    return grey.to(torch.uint8).numpy()


def wrong_name(name: str, data: bytes) -> tuple[str, str] | None:
    """The problem of a file whose ending names another format than that of its content.

    >>> wrong_name("owl.jpg", b"GIF89a")
    ('wrong extension', 'the content is gif')
    """
    for magic, endings in MAGIC.items():
        if data.startswith(magic) and Path(name).suffix[1:].lower() not in endings:
            return "wrong extension", f"the content is {endings[0]}"
    return None


def perceptual_hashes(thumbs: UInt8[np.ndarray, "n 32 32"]) -> UInt64[np.ndarray, " n"]:
    """64 bits per thumbnail; similar images differ in few of them."""
    place = torch.arange(THUMB) + 0.5
    waves = torch.cos(math.pi / THUMB * place * torch.arange(8)[:, None])
    result = np.zeros(len(thumbs), np.uint64)
    weights = 1 << np.arange(64, dtype=np.uint64)
    for begin in range(0, len(thumbs), 4096):
        part = torch.from_numpy(thumbs[begin : begin + 4096]).float()
        low = (waves @ part @ waves.T).flatten(1)
        bits = low > low[:, 1:].median(1, keepdim=True).values  # without the first, the mean brightness
        result[begin : begin + 4096] = (bits.numpy() * weights).sum(1, dtype=np.uint64)
    return result


def shapes(thumbs: UInt8[np.ndarray, "n 32 32"]) -> Float[np.ndarray, "n 256"]:
    """Small thumbnails whose product is their correlation; without contrast they are short and match nothing."""
    result = np.zeros((len(thumbs), 256), np.float32)
    for begin in range(0, len(thumbs), 4096):
        flat = _halved(torch.from_numpy(thumbs[begin : begin + 4096]))
        flat = flat - flat.mean(1, keepdim=True)
        deviation = flat.square().mean(1, keepdim=True).sqrt()
        result[begin : begin + 4096] = (flat / (16 * deviation.clamp_min(FLAT))).numpy()
    return result


def _halved(thumbs: Tensor) -> Tensor:
    return avg_pool2d(thumbs[:, None].float(), 2).flatten(1)
