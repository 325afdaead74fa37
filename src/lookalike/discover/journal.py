"""A file of lines that only grows: what a person said.

A line is on disk before it counts; the last line of a process that was killed may be torn, and is left out.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lookalike.files import cannot_write


def append(place: Path, entry: Mapping[str, Any]) -> None:
    """Keep a line: it is on disk when this returns."""
    try:
        with place.open("ab+") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - 1, 0))
            torn = file.read(1) not in (b"", b"\n")
            file.write((b"\n" if torn else b"") + json.dumps(entry).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise cannot_write(place, error) from error


def entries(place: Path) -> list[dict[str, Any]]:
    """All whole lines so far."""
    result = []
    for line in place.read_bytes().splitlines() if place.is_file() else []:
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict):
            result.append(entry)
    return result
