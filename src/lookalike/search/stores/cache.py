"""Segments on disk: memory-mapped files beside the truth, which anyone may delete.

Every file carries a checksum, and the list of segments names the change of the truth it belongs to; what does not fit
is not used, and built again. One process writes at a time; others go on with what they hold in memory.
"""

import json
import os
import re
import shutil
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lookalike import files
from lookalike.errors import UserError
from lookalike.search.scan import Rounded
from lookalike.search.stores.segments import Segment, View

LIST, ENTRY, FORMAT = "segments.json", "segment.json", 1
NAME = re.compile(r"\d+-\d+-\d+-[0-9a-f]{6}")  # of a segment's folder
CHUNK = 1 << 24


@dataclass(frozen=True)
class Cache:
    """The folder of one index's segments."""

    folder: Path

    def load(self, generation: int, spherical: bool) -> View | None:
        """What the folder holds of a generation, or None where it is missing or damaged."""
        for _ in range(2):  # once more: another process may have replaced the segments in between
            try:
                content = files.read_json(self.folder / LIST)
                if (content["format"], content["generation"]) != (FORMAT, generation):
                    return None
                segments = tuple(self._read(name, dead, check=True) for name, dead in content["segments"])
                return View(segments, generation, content["change"], content["token"], spherical)
            except (OSError, ValueError, KeyError, TypeError):
                continue
        return None

    def _read(self, name: str, dead: Sequence[int], check: bool) -> Segment:
        if not NAME.fullmatch(name):
            raise ValueError(f"{name!r} is not a segment")
        place = self.folder / name
        entry = files.read_json(place / ENTRY)
        arrays = {}
        for kind, expected in entry["checksums"].items():
            file = place / f"{kind}.npy"
            if not file.is_file():  # a pipe would keep numpy waiting
                raise ValueError(f"{file} is not an ordinary file")
            arrays[kind] = np.load(file, mmap_mode="c", allow_pickle=False)  # torch refuses read-only ones
            if check and _checksum_on_disk(arrays[kind], file) != expected:
                raise ValueError(f"{place / kind} is damaged")
        rounded = Rounded(arrays["items"], arrays["offsets"], arrays["mean"], **entry["rounding"])
        return Segment(arrays["keys"], arrays["vectors"], rounded, np.array(dead, np.int64), name)

    def save(self, view: View) -> View:
        """Write what is not on disk yet; the same view, mapped. Without space, rights or the lock nothing changes."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with files.lock(self.folder / "lock", seconds=0) as mine:
                return self._save(view) if mine else view
        except (OSError, UserError):
            return view

    def _save(self, view: View) -> View:
        files.remove_leftovers(self.folder)
        segments = tuple(
            segment if segment.name else self._write(segment, view.generation) for segment in view.segments
        )
        listed = [(segment.name, segment.dead.tolist()) for segment in segments]
        content = {"format": FORMAT, "generation": view.generation, "change": view.change, "token": view.token}
        files.write_text(self.folder / LIST, json.dumps(content | {"segments": listed}))
        self._forget({segment.name for segment in segments})
        return replace(view, segments=segments)

    def _write(self, segment: Segment, generation: int) -> Segment:
        rounded = segment.rounded
        arrays = {"keys": segment.keys, "vectors": segment.vectors, "items": rounded.items,
                  "offsets": rounded.offsets, "mean": rounded.mean}  # fmt: skip
        name = f"{generation}-{int(segment.keys[0])}-{int(segment.keys[-1])}-{os.urandom(3).hex()}"
        entry = {
            "checksums": {kind: checksum(array) for kind, array in arrays.items()},
            "rounding": {part: getattr(rounded, part) for part in ("step", "error", "reach", "size", "spherical")},
        }
        with files.whole_folder(self.folder / name) as place:
            for kind, array in arrays.items():
                np.save(place / f"{kind}.npy", array, allow_pickle=False)
            (place / ENTRY).write_text(json.dumps(entry), encoding="utf-8")
        return self._read(name, segment.dead.tolist(), check=False)

    def _forget(self, kept: set[str | None]) -> None:
        for place in self.folder.iterdir():
            if NAME.fullmatch(place.name) and place.name not in kept:
                shutil.rmtree(place, ignore_errors=True)


def _checksum_on_disk(array: np.memmap, file: Path) -> int:
    """The checksum of a mapped array by reading its file: the map stays untouched, and out of this process's memory."""
    value = 0
    with file.open("rb") as content:
        content.seek(array.offset)
        while part := content.read(CHUNK):
            value = zlib.crc32(part, value)
    return value


def checksum(array: np.ndarray) -> int:
    """CRC-32 of the content."""
    content = memoryview(np.ascontiguousarray(array).data).cast("B") if array.size else memoryview(b"")
    value = 0
    for start in range(0, len(content), CHUNK):
        value = zlib.crc32(content[start : start + CHUNK], value)
    return value
