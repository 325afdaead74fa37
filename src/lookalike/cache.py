"""Results that are computed once and kept: a folder per key, complete or not there at all.

Folders are written as `files.whole_folder` does, so a process killed half-way leaves nothing that looks finished. A
lock lets a second builder wait for the first instead of doing the work twice.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from lookalike.errors import UserError
from lookalike.files import lock, remove_leftovers, whole_folder

VARIABLE = "LOOKALIKE_CACHE"


def cache_folder() -> Path:
    """Where caches live: the environment variable LOOKALIKE_CACHE, else the user's own cache folder."""
    folder = os.environ.get(VARIABLE)
    if folder:
        return Path(folder).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "lookalike"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "lookalike" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lookalike"


def built(kind: str, key: str, build: Callable[[Path], None]) -> Path:
    """The finished folder of this key; if there is none, `build` fills one first.

    >>> import tempfile
    >>> os.environ[VARIABLE] = tempfile.mkdtemp()
    >>> place = built("notes", "a1", lambda folder: (folder / "note.txt").write_text("kept") and None)
    >>> (place / "note.txt").read_text()
    'kept'
    """
    parent = cache_folder() / kind
    place = parent / key
    if place.is_dir():
        return place
    try:
        parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"cannot write the cache {parent} ({error.strerror}): set {VARIABLE} to another folder"
        ) from None
    with lock(parent / f"{key}.lock"):
        if not place.is_dir():
            remove_leftovers(parent, key)
            _build(place, build)
    return place


def _build(place: Path, build: Callable[[Path], None]) -> None:
    try:
        with whole_folder(place) as folder:
            build(folder)
    except UserError as error:
        if isinstance(error.__cause__, OSError):
            raise UserError(f"{error}; {VARIABLE} sets the folder of the cache") from error.__cause__
        raise
