"""Results that are computed once and kept: a folder per key, complete or not there at all.

Folders are written as `files.whole_folder` does, so a process killed half-way leaves nothing that looks finished. A
lock lets a second builder wait for the first instead of doing the work twice. What was damaged since is built again.
Within `in_memory` some of it stays in memory too: the many runs of a sweep share it without reading it again.
"""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

from lookalike import files
from lookalike.errors import UserError
from lookalike.files import UnwritableError, lock, remove_leftovers, whole_folder

Content = TypeVar("Content")
VARIABLE = "LOOKALIKE_CACHE"
Memory = dict[tuple[str, str], Any]
_MEMORY: ContextVar[Memory | None] = ContextVar("memory", default=None)


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


def make_folder(folder: Path) -> None:
    """A folder of the cache, with those above it."""
    files.make_folder(folder, f"set {VARIABLE} to another folder")


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
    make_folder(parent)
    with lock(parent / f"{key}.lock"):
        if not place.is_dir():
            remove_leftovers(parent, key)
            _build(place, build)
    return place


def loaded(kind: str, key: str, build: Callable[[Path], None], load: Callable[[Path], Content]) -> Content:
    """What `load` reads from the finished folder; one that it cannot read is built again.

    >>> import tempfile
    >>> os.environ[VARIABLE] = tempfile.mkdtemp()
    >>> def build(folder): (folder / "number.txt").write_text("7")
    >>> def load(folder): return int((folder / "number.txt").read_text())
    >>> (built("numbers", "a1", build) / "number.txt").write_text("damaged")
    7
    >>> loaded("numbers", "a1", build, load)
    7
    """
    place = built(kind, key, build)
    try:
        return _load(place, load)
    except Exception:  # a damaged file fails in whatever way its reader does
        with lock(place.parent / f"{key}.lock"):
            try:
                return _load(place, load)  # another process has built it again
            except Exception:
                shutil.rmtree(place, ignore_errors=True)
                _build(place, build)
        return load(place)


def _load(place: Path, load: Callable[[Path], Content]) -> Content:
    """What `load` reads; pipes and devices in the place of files would keep it waiting."""
    for file in place.rglob("*"):
        if not file.is_file() and not file.is_dir():
            raise ValueError(f"{file} is not an ordinary file")
    return load(place)


@contextmanager
def in_memory(memory: Memory | None = None) -> Iterator[None]:
    """Whatever is `remembered` within the block stays in memory until it ends, or as long as you keep `memory`."""
    token = _MEMORY.set({} if memory is None else memory)
    try:
        yield
    finally:
        _MEMORY.reset(token)


def remembered(kind: str, key: str, make: Callable[[], Content]) -> Content:
    """What `make` returns; within `in_memory` it is called once for each key.

    >>> with in_memory():
    ...     remembered("lists", "a", list) is remembered("lists", "a", list)
    True
    >>> remembered("lists", "a", list) is remembered("lists", "a", list)
    False
    """
    memory = _MEMORY.get()
    if memory is None:
        return make()
    if (kind, key) not in memory:
        memory[kind, key] = make()
    content: Content = memory[kind, key]
    return content


def _build(place: Path, build: Callable[[Path], None]) -> None:
    try:
        with whole_folder(place) as folder:
            build(folder)
    except UnwritableError as error:
        raise UserError(f"{error}; {VARIABLE} sets the folder of the cache") from error
