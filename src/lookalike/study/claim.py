"""One cell, one process: a lock that the system itself gives back when its owner dies, however it dies."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lookalike.errors import UserError


@contextmanager
def claimed(file: Path) -> Iterator[bool]:
    """Whether this process has the cell now; it keeps it until the end of the block, or of the process.

    A lock on an open file (flock) cannot go stale: that of a killed process is free at once. It works among processes
    of a machine, and among machines that share a folder by NFS.
    """
    try:
        import fcntl
    except ImportError:  # no such locks: one process at a time
        yield True
        return
    try:
        handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise UserError(f"cannot write {file} ({error.strerror}): give another --out") from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
            return
        os.truncate(handle, 0)
        os.write(handle, f"process {os.getpid()}\n".encode())  # for people who look
        yield True
    finally:
        os.close(handle)
