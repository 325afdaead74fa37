"""Segments on disk: memory-mapped files beside the truth, which anyone may delete.

Every byte is under a checksum: texts begin with their own, and the entry of a segment holds those of its whole files.
The list of segments names the change of the truth it belongs to. What does not fit is not used, and built again. One
process writes at a time; others go on with what they hold in memory.
"""

import json
import math
import os
import re
import shutil
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from lookalike import files
from lookalike.errors import UserError
from lookalike.search.scan.rounded import Rounded
from lookalike.search.stores.sqlite.segments import Keys, Places, Segment, SegmentView

LIST, ENTRY, FORMAT = "segments.json", "segment.json", 2
NAME = re.compile(r"\d+-\d+-\d+-[0-9a-f]{6}")  # of a segment's folder
KINDS = ("keys", "vectors", "items", "offsets", "mean")
NUMBERS = ("unit", "step", "error", "reach", "size")
CHUNK = 1 << 24


@dataclass(frozen=True)
class Cache:
    """The folder of one index's segments."""

    folder: Path

    def load(self, generation: int, dim: int, spherical: bool) -> SegmentView | None:
        """What the folder holds of a generation, or None where it is missing or damaged."""
        for _ in range(2):  # once more: another process may have replaced the segments in between
            try:
                content = _unsealed(self.folder / LIST)
                if (content["format"], content["generation"]) != (FORMAT, generation):
                    return None
                segments = tuple(self._read(name, dead, dim, spherical) for name, dead in content["segments"])
                _check(all(one.keys[-1] < other.keys[0] for one, other in pairwise(segments)), "segments overlap")
                return SegmentView(segments, generation, int(content["change"]), str(content["token"]), spherical)
            except Exception:  # what is damaged, or a stranger's, fails in whatever way its reader does
                continue
        return None

    def _read(self, name: str, dead: Sequence[int], dim: int, spherical: bool) -> Segment:
        _check(NAME.fullmatch(name) is not None, f"{name!r} is no segment")
        entry = _unsealed(self.folder / name / ENTRY)
        for kind in KINDS:
            _check(checksum(self.folder / name / f"{kind}.npy") == entry["checksums"][kind], f"{kind} are damaged")
        segment = self._mapped(name, dead, entry["rounding"])
        _check(_fits(segment, dim, spherical), f"{name} is no segment of this index")
        return segment

    def _mapped(self, name: str, dead: Sequence[int], rounding: Mapping[str, Any]) -> Segment:
        # private maps that can be written: torch refuses read-only ones
        arrays = {kind: np.load(self.folder / name / f"{kind}.npy", "c", allow_pickle=False) for kind in KINDS}
        rounded = Rounded(arrays["items"], arrays["offsets"], arrays["mean"], **rounding)
        return Segment(arrays["keys"], arrays["vectors"], rounded, np.array(dead, np.int64), name)

    def save(self, view: SegmentView) -> SegmentView:
        """Write what is not on disk yet; the same view, mapped. Without space, rights or the lock nothing changes."""
        if self.folder.is_symlink():  # it came with a stranger's index and leads to a folder of the reader's
            return view
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with files.lock(self.folder / "lock", seconds=0) as mine:
                return self._save(view) if mine else view
        except (OSError, UserError):
            return view

    def _save(self, view: SegmentView) -> SegmentView:
        files.remove_leftovers(self.folder)
        segments = tuple(
            segment if segment.name else self._write(segment, view.generation) for segment in view.segments
        )
        listed = [(segment.name, segment.dead.tolist()) for segment in segments]
        content = {"format": FORMAT, "generation": view.generation, "change": view.change, "token": view.token}
        files.write_text(self.folder / LIST, _sealed(content | {"segments": listed}))
        self._forget({segment.name for segment in segments})
        return replace(view, segments=segments)

    def _write(self, segment: Segment, generation: int) -> Segment:
        rounded = segment.rounded
        arrays = (segment.keys, segment.vectors, rounded.items, rounded.offsets, rounded.mean)
        rounding = {part: getattr(rounded, part) for part in (*NUMBERS, "spherical")}
        name = f"{generation}-{int(segment.keys[0])}-{int(segment.keys[-1])}-{os.urandom(3).hex()}"
        with files.whole_folder(self.folder / name) as place:
            for kind, array in zip(KINDS, arrays, strict=True):
                np.save(place / f"{kind}.npy", array, allow_pickle=False)
            checksums = {kind: checksum(place / f"{kind}.npy") for kind in KINDS}
            entry = _sealed({"checksums": checksums, "rounding": rounding})
            (place / ENTRY).write_text(entry, encoding="utf-8")
        return self._mapped(name, segment.dead.tolist(), rounding)

    def clear(self) -> None:
        """Delete all segments, those too that a killed process was writing."""
        if self.folder.is_symlink() or not self.folder.is_dir():
            return
        with files.lock(self.folder / "lock"):
            files.remove_leftovers(self.folder)
            (self.folder / LIST).unlink(missing_ok=True)
            self._forget(set())

    def _forget(self, kept: set[str | None]) -> None:
        for place in self.folder.iterdir():
            if NAME.fullmatch(place.name) and place.name not in kept and place.is_dir():  # a pipe would keep it waiting
                shutil.rmtree(place, ignore_errors=True)


def checksum(file: Path) -> int:
    """CRC-32 of a whole file, read in parts: what is mapped of it stays out of this process's memory."""
    value = 0
    with files.open_regular(file) as content:
        while part := content.read(CHUNK):
            value = zlib.crc32(part, value)
    return value


def _sealed(content: Mapping[str, Any]) -> str:
    text = json.dumps(content)
    return f"{zlib.crc32(text.encode()):08x}\n{text}"


def _unsealed(file: Path) -> Any:
    seal, _, text = files.read_text(file).partition("\n")
    _check(seal == f"{zlib.crc32(text.encode()):08x}", f"{file.name} is damaged")
    return json.loads(text)


def _fits(segment: Segment, dim: int, spherical: bool) -> bool:
    """Whether all parts of a segment have the form and the range that they were written with."""
    count, rounded = len(segment.keys), segment.rounded
    forms = (
        (segment.keys, np.int64, (count,)),
        (segment.vectors, np.float32, (count, dim)),
        (rounded.items, np.int8, (count, dim)),
        (rounded.offsets, np.float32, (count,)),
        (rounded.mean, np.float64, (dim,)),
    )
    numbers = [getattr(rounded, part) for part in NUMBERS]
    return (
        all(array.dtype == kind and array.shape == shape for array, kind, shape in forms)
        and _rising(segment.keys)
        and segment.keys[0] > 0
        and _rising(segment.dead)
        and bool((segment.dead >= 0).all() and (segment.dead < count).all())
        and bool(np.isfinite(rounded.offsets).all() and np.isfinite(rounded.mean).all())
        and all(math.isfinite(number) and number >= 0 for number in numbers)
        and rounded.unit > 0
        and rounded.spherical is spherical
    )


def _rising(numbers: Keys | Places) -> bool:
    return bool((numbers[1:] > numbers[:-1]).all())


def _check(holds: bool, problem: str) -> None:
    if not holds:
        raise ValueError(problem)
