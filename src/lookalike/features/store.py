"""Vectors on disk, found by the content of their images: one folder per network and view.

Images are spread over buckets by their digest. Whoever holds a bucket's lock computes what it lacks, so that several
processes share the work and none does it twice. Every few hundred images are a file of their own, whole or not there: a
killed process loses only those it was working on. A damaged file is removed and its vectors are computed again.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lookalike.cache import make_folder
from lookalike.files import lock, read_arrays, remove_leftovers, whole_file

BUCKETS = 16
BLOCK = 256  # vectors in a file
Vectors = NDArray[np.float32]
Compute = Callable[[Sequence[bytes]], Vectors]


class FeatureStore:
    """The vectors of one network and view."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        make_folder(folder)

    def read(self, digests: Sequence[bytes]) -> dict[bytes, Vectors]:
        """The vectors of these digests, as far as they are there."""
        vectors: dict[bytes, Vectors] = {}
        for bucket, part in _by_bucket(digests).items():
            present, _ = self._read(bucket)
            vectors.update((digest, present[digest]) for digest in part if digest in present)
        return vectors

    def add(self, digests: Sequence[bytes], compute: Compute, first: int = 0) -> dict[bytes, Vectors]:
        """The vectors of these digests; `compute` makes what is not there, beginning with bucket `first`."""
        vectors: dict[bytes, Vectors] = {}
        parts = _by_bucket(digests)
        waiting = sorted(parts, key=lambda bucket: (bucket - first) % BUCKETS)
        seconds = 0.0
        while waiting:
            missing: dict[int, list[bytes]] = {}
            with ExitStack() as locks:
                for bucket in waiting:
                    # wait only while holding no other lock, so that no two processes wait for each other
                    if locks.enter_context(lock(self.folder / f"{bucket:x}.lock", 0.0 if missing else seconds)):
                        vectors |= self._repaired(bucket, parts[bucket])
                        missing[bucket] = [digest for digest in parts[bucket] if digest not in vectors]
                    if sum(map(len, missing.values())) >= BLOCK:
                        break
                vectors |= self._compute(missing, compute)
            waiting = [bucket for bucket in waiting if bucket not in missing]
            seconds = 0.0 if missing else -1.0  # others are at work on all that is left
        return vectors

    def _repaired(self, bucket: int, digests: list[bytes]) -> dict[bytes, Vectors]:
        """Under the lock: what is there; what is damaged or left over by a killed process is removed."""
        remove_leftovers(self.folder, f"{bucket:x}-*")
        present, damaged = self._read(bucket)
        for path in damaged:
            path.unlink(missing_ok=True)
        return {digest: present[digest] for digest in digests if digest in present}

    def _compute(self, missing: dict[int, list[bytes]], compute: Compute) -> dict[bytes, Vectors]:
        """Compute and keep what some buckets lack, a block at a time."""
        vectors: dict[bytes, Vectors] = {}
        everything = [digest for digests in missing.values() for digest in digests]
        for start in range(0, len(everything), BLOCK):
            block = everything[start : start + BLOCK]
            computed = dict(zip(block, compute(block), strict=True))
            for bucket, digests in _by_bucket(block).items():
                self._write(bucket, digests, np.stack([computed[digest] for digest in digests]))
            vectors |= computed
        return vectors

    def _write(self, bucket: int, digests: list[bytes], vectors: Vectors) -> None:
        joined = b"".join(digests)
        name = blake2b(joined, digest_size=8).hexdigest()
        with whole_file(self.folder / f"{bucket:x}-{name}.npz") as file:
            np.savez(file, digests=np.frombuffer(joined, np.uint8).reshape(len(digests), -1), vectors=vectors)

    def _read(self, bucket: int) -> tuple[dict[bytes, Vectors], list[Path]]:
        """The vectors of a bucket by digest, and the files that cannot be read."""
        present: dict[bytes, Vectors] = {}
        damaged = []
        for path in sorted(self.folder.glob(f"{bucket:x}-*.npz")):
            try:
                present.update(_load(path))
            except FileNotFoundError:
                continue  # damaged, and removed by the process that holds the lock
            except (OSError, ValueError, KeyError):
                damaged.append(path)
        return present, damaged


def _load(path: Path) -> Iterator[tuple[bytes, Vectors]]:
    arrays = read_arrays(path)
    digests, vectors = arrays["digests"], arrays["vectors"]
    if len(digests) != len(vectors):
        raise ValueError(f"{len(digests)} digests for {len(vectors)} vectors")
    return zip((digest.tobytes() for digest in digests), vectors, strict=True)


def _by_bucket(digests: Sequence[bytes]) -> dict[int, list[bytes]]:
    """Each digest once, in the bucket that its first bits choose."""
    parts: dict[int, list[bytes]] = {}
    for digest in dict.fromkeys(digests):
        parts.setdefault(digest[0] % BUCKETS, []).append(digest)
    return parts
