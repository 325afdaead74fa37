"""Things that are built once and kept: a folder per key, complete or not there at all.

A builder writes into a private folder, which is renamed when it is complete; so a process killed half-way leaves
nothing that looks finished. A lock lets a second builder wait for the first instead of doing the work twice; the system
drops the lock with its owner.
"""

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from lookalike.errors import UserError

VARIABLE = "LOOKALIKE_CACHE"


def cache_folder() -> Path:
    """Where caches live: the environment variable LOOKALIKE_CACHE, else the user's own cache folder."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "lookalike"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "lookalike" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lookalike"


def built(kind: str, key: str, build: Callable[[Path], None]) -> Path:
    """The finished folder of this key; if there is none, `build` fills one first.

    >>> os.environ[VARIABLE] = tempfile.mkdtemp()
    >>> place = built("notes", "a1", lambda folder: (folder / "note.txt").write_text("kept") and None)
    >>> (place / "note.txt").read_text()
    'kept'
    """
    parent = cache_folder() / kind
    final = parent / key
    if final.is_dir():
        return final
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with _locked(parent / f"{key}.lock"):
            if not final.is_dir():
                _build(parent, key, build)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.EPERM):
            raise UserError(
                f"cannot write the cache '{parent}' ({error.strerror}): make room, or set {VARIABLE} to another folder"
            ) from None
        raise
    return final


def _build(parent: Path, key: str, build: Callable[[Path], None]) -> None:
    for left in parent.glob(f"{key}.part-*"):  # the lock is ours, so whoever began these is gone
        shutil.rmtree(left, ignore_errors=True)
    part = Path(tempfile.mkdtemp(prefix=f"{key}.part-", dir=parent))
    try:
        build(part)
        for file in part.iterdir():
            with file.open("rb") as content:
                os.fsync(content.fileno())  # a crash of the machine must not leave a complete name on empty pages
        part.chmod(0o755)
        part.rename(parent / key)
    finally:
        shutil.rmtree(part, ignore_errors=True)


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    with file.open("w") as lock:
        if sys.platform != "win32":  # there, two builders both build, and the rename decides
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
