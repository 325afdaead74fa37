"""The content of files as short digests: the key of the decoded cache."""

import os
from hashlib import blake2b
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from lookalike.cache import loaded
from lookalike.data.images.source import Files, Source
from lookalike.files import read_arrays
from lookalike.image_files import UnreadableError, read
from lookalike.ordered_map import in_order

DIGEST = 16  # bytes; two different files agree by chance once in 10^38 pairs


def digests(images: Files) -> UInt8[np.ndarray, "n 16"]:
    """One digest per file; zeros for a file that cannot be read."""
    result = np.zeros((len(images), DIGEST), np.uint8)
    for row in range(len(images)):
        result[row] = np.frombuffer(_digest(images.path(row)), np.uint8)
    return result


def content_digests(images: Source, threads: int = 2) -> UInt8[np.ndarray, "n 16"]:
    """One digest per image: of its file, or of its pixels where there is none. Files are read again only when their
    names or times of change differ."""
    if isinstance(images, Files):
        return loaded("digests", stamp(images), lambda folder: _write(folder, images), _load)
    known: np.ndarray | None = getattr(images, "digests", None)
    if known is not None:
        return known

    def digest(row: int) -> bytes:
        return pixel_digest(images.open(row).decode().permute(1, 2, 0).contiguous().numpy())

    listed = list(in_order(digest, len(images), threads))
    return np.frombuffer(b"".join(listed), np.uint8).reshape(len(images), DIGEST)


def _write(folder: Path, images: Files) -> None:
    np.savez(folder / "digests.npz", digests=digests(images))  # with a checksum, unlike .npy


def _load(folder: Path) -> UInt8[np.ndarray, "n 16"]:
    result: np.ndarray = read_arrays(folder / "digests.npz")["digests"]
    return result


def pixel_digest(pixels: UInt8[np.ndarray, "h w 3"]) -> bytes:
    summary = blake2b(str(pixels.shape).encode(), digest_size=DIGEST)
    summary.update(pixels.data)
    return summary.digest()


def _digest(path: Path) -> bytes:
    try:
        return blake2b(read(path), digest_size=DIGEST).digest()
    except UnreadableError:
        return bytes(DIGEST)


def stamp(images: Files) -> str:
    """Names, sizes and times of change of all files: while they stay the same, so does the content."""
    summary = blake2b(digest_size=DIGEST)
    for row in range(len(images)):
        path = str(images.path(row))
        try:
            state = os.stat(path)
            fact = f"{os.path.abspath(path)} {state.st_size} {state.st_mtime_ns} {state.st_ctime_ns} {state.st_ino}\n"
        except (OSError, ValueError):  # a zero byte in the name
            fact = f"{os.path.abspath(path)} missing\n"
        summary.update(fact.encode("utf-8", "surrogateescape"))
    return summary.hexdigest()
