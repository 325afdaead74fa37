"""A file of lines that only grows: a person's answers and changes.

A line is on disk before it counts, and it counts once it has ended: what a killed process, or a full disk, has left of
one never does. The file may come from anywhere: what a line may say is for its reader.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lookalike.errors import UserError, check
from lookalike.files import LARGEST_TEXT, cannot_write, read_regular, sync_folder

BROKEN = b"\0\n"  # ends what is left of a line, so that nobody takes it for one


def append(place: Path, entry: Mapping[str, Any]) -> None:
    """Keep a line: it is on disk when this returns."""
    check(not place.is_symlink(), f"cannot write {place}: it is a link, delete it")
    try:
        with place.open("ab+") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - 1, 0))
            whole = file.read(1) in (b"", b"\n")
            file.write((b"" if whole else BROKEN) + json.dumps(entry).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        if not size:
            sync_folder(place.parent)
    except OSError as error:
        raise cannot_write(place, error) from error


def entries(place: Path) -> list[dict[str, Any]]:
    """All whole lines so far."""
    return [entry for _, entry in numbered(place)]


def numbered(place: Path) -> list[tuple[int, dict[str, Any]]]:
    """The same with the number of each line in the file, where what is left of others stands between them."""
    try:
        content = read_regular(place, LARGEST_TEXT)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UserError(f"cannot read {place} ({error.strerror or error}): delete it, or put it back") from None
    result = []
    for number, line in enumerate(content.split(b"\n")[:-1], start=1):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict):
            result.append((number, entry))
    return result
