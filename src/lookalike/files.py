"""Files that are whole or not there, and locks that end with their owner.

Whatever is kept on disk is written beside its place, flushed to the disk and renamed: a reader, or the next process
after a crash, sees the old content or the new, never half of it.
"""

import errno
import json
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import file_digest
from pathlib import Path
from typing import IO, Any
from unicodedata import category

import numpy as np

from lookalike.errors import UserError

PARTIAL = ".partial"  # ends the name of everything that is not finished
ROOM, GROWTH = 1 << 30, 100  # bytes that an .npz file may unpack to, or as many times as it has itself
LARGEST_TEXT = 1 << 28  # bytes; the log of a very long run has some millions


@contextmanager
def whole_file(path: Path, mode: str = "wb") -> Iterator[IO[Any]]:
    """An open file that takes the place of `path` when the block ends without an error.

    >>> from tempfile import mkdtemp
    >>> note = Path(mkdtemp()) / "note.txt"
    >>> with whole_file(note, "w") as file:
    ...     _ = file.write("kept")
    >>> note.read_text()
    'kept'
    """
    partial = beside(path)
    try:
        with partial.open(mode, encoding=None if "b" in mode else "utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        with suppress(OSError):  # it is gone, or a leftover that `remove_leftovers` finds
            partial.unlink()


def write_text(path: Path, text: str) -> None:
    with whole_file(path, "w") as file:
        file.write(text)


def write_once(path: Path, text: str) -> bool:
    """Whether this process wrote the file: the first of several writers does, the others leave it as it is.

    It needs no locks, so it also holds between machines that share a filesystem without them.

    >>> from tempfile import mkdtemp
    >>> note = Path(mkdtemp()) / "note.txt"
    >>> write_once(note, "first"), write_once(note, "second"), note.read_text()
    (True, False, 'first')
    """
    partial = beside(path)
    try:
        with partial.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        link(partial, path)
        sync_folder(path.parent)
    except FileExistsError:
        return False
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        with suppress(OSError):
            partial.unlink()
    return True


def link(partial: Path, path: Path) -> None:
    """The name `path` for a finished file; a FileExistsError where it is taken, which a renaming would not say."""
    try:
        os.link(partial, path)
    except FileExistsError:
        raise
    except OSError:  # a filesystem without hard links: the name is claimed first, and the content follows at once
        with path.open("xb"):
            partial.replace(path)


@contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """An empty folder to fill, which takes the place of `path` when the block ends without an error."""
    partial = beside(path)
    try:
        partial.mkdir(parents=True)
        yield partial
        for file in partial.rglob("*"):
            _same_readers(file, partial)
            sync(file)
        sync(partial)
        _replace_folder(partial, path)
        sync_folder(path.parent)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _same_readers(file: Path, folder: Path) -> None:
    """Whoever may read the folder may read the file: some libraries write files for their owner alone."""
    if file.is_file():
        file.chmod(folder.stat().st_mode & 0o666)


def _replace_folder(new: Path, path: Path) -> None:
    old = new.with_suffix(".old")
    if os.path.lexists(path):
        path.rename(old)
    try:
        new.rename(path)
    except OSError:
        if os.path.lexists(old):
            old.rename(path)
        raise
    if old.is_dir() and not old.is_symlink():  # rmtree would wait for whoever writes to a pipe
        shutil.rmtree(old, ignore_errors=True)
    else:
        old.unlink(missing_ok=True)


def read_regular(path: Path, limit: int) -> bytes:
    """The content of an ordinary file of at most `limit` bytes.

    Anything else is an OSError at once: a pipe would block, a device has no end, a sparse file fills the memory.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        content = file.read(limit + 1) if size <= limit else b""
        if size > limit or len(content) > limit:
            raise OSError(errno.EFBIG, f"it has more than {limit:,} bytes")
        return content


@contextmanager
def open_regular(path: Path) -> Iterator[IO[bytes]]:
    """An ordinary file, open to be read; anything else is an OSError at once."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except ValueError:  # a zero byte in the name
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)) from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.ENXIO, "it is not an ordinary file")
    with os.fdopen(handle, "rb") as file:
        yield file


def read_text(path: Path) -> str:
    """The text of an ordinary file; whatever is wrong is an OSError or a ValueError."""
    return read_regular(path, LARGEST_TEXT).decode("utf-8")


def read_json(path: Path) -> Any:
    """The content of a JSON file; whatever is wrong is an OSError or a ValueError."""
    try:
        return json.loads(read_text(path))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_array(path: Path) -> Any:
    """The array of an .npy file; whatever is wrong is an OSError or a ValueError."""
    try:
        with open_regular(path) as file:
            return np.load(file, allow_pickle=False)
    except (OSError, ValueError):
        raise
    except Exception as error:  # an empty file, a header that promises more than there is memory
        raise ValueError(str(error) or type(error).__name__) from error


def read_arrays(path: Path) -> dict[str, Any]:
    """The arrays of an .npz file, compared with its checksums; whatever is wrong is an OSError or a ValueError."""
    try:
        with open_regular(path) as file, np.load(file, allow_pickle=False) as content:
            size = sum(part.file_size for part in content.zip.infolist())
            if size > max(ROOM, GROWTH * os.fstat(file.fileno()).st_size):
                raise ValueError(f"it unpacks to {size:,} bytes, far more than it has itself")
            return dict(content)
    except (OSError, ValueError):
        raise
    except Exception as error:  # zip files and headers of arrays can be broken in many ways
        raise ValueError(str(error) or type(error).__name__) from error


def sha256(path: Path) -> str:
    """The SHA-256 of a file's content, as 64 hexadecimal digits."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def make_folder(folder: Path, advice: str = "choose another --out") -> None:
    """A folder, with those above it; one that cannot be is a line that ends in the `advice`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make the folder {folder} ({error.strerror}): {advice}") from None


def printable(name: str) -> str:
    """A file name as text that can be written anywhere: bytes that are not UTF-8, and control characters, are escaped.

    >>> printable("caf\\udce9.jpg"), printable("a\\nb")
    ('caf\\\\xe9.jpg', 'a\\\\nb')
    """
    return name if name.isprintable() else "".join(map(_escaped, name))


def _escaped(part: str) -> str:
    if "\udc80" <= part <= "\udcff":  # what Python makes of a byte that is not UTF-8
        return f"\\x{ord(part) - 0xDC00:02x}"
    return part.encode("unicode_escape").decode() if category(part) in ("Cc", "Cs", "Zl", "Zp") else part


def remove_leftovers(folder: Path, name: str = "*") -> None:
    """Delete what killed writers left in a folder (of one file or all). Only its owner may do this, under its lock."""
    for left in folder.glob(f".{name}.*{PARTIAL}"):
        if left.is_dir():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


def beside(path: Path) -> Path:
    """A name that no other writer uses: readers skip it, `remove_leftovers` knows it."""
    return path.with_name(f".{path.name}.{os.getpid()}-{os.urandom(4).hex()}{PARTIAL}")


def sync(path: Path) -> None:
    """Return when the content of a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Return when the names in a folder are on the disk, on systems that can say so."""
    if os.name == "posix":
        sync(folder)


class UnwritableError(UserError):
    """A place that cannot be written to: it is full, not there, or somebody else's."""


def cannot_write(path: Path, error: OSError) -> UnwritableError:
    return UnwritableError(f"cannot write {path} ({error.strerror or error}): free some space or choose another place")


@contextmanager
def lock(path: Path, seconds: float = -1.0) -> Iterator[bool]:
    """Whether this process holds the lock `path` now; it keeps it until the block, or the process, ends.

    It waits at most `seconds` (0: not at all; negative: as long as it takes). The system releases the lock of a killed
    process at once. Where a filesystem has no locks, a marker file stands in, which lets nobody else in.

    >>> from tempfile import mkdtemp
    >>> place = Path(mkdtemp()) / "cell.lock"
    >>> with lock(place) as first, lock(place, seconds=0) as second:
    ...     print(first, second)
    True False
    """
    import filelock

    if path.is_symlink():  # in a folder of a stranger's it may lead to a file of the reader's, which would be emptied
        raise UserError(f"cannot lock {path}: it is a link, delete it")
    holder = filelock.FileLock(path, timeout=seconds, is_singleton=False)
    try:
        holder.acquire()
    except filelock.Timeout:
        yield False
        return
    except OSError as error:
        raise UserError(
            f"cannot lock {path} ({error.strerror or error}): choose a folder that can be written"
        ) from None
    try:
        yield True
    finally:
        holder.release()


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """One process at a time, of those that ask; no file is left behind. Where the system has no such lock, no wait."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
