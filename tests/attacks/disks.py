"""A disk that is really full: a small file system in memory holds the tables of an index, up to the last page."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psycopg

from lookalike.search.items import Identity, Item
from lookalike.search.stores import StorageError, Store, places
from tests.attacks.outcomes import right
from tests.fixtures.postgres_server import USER, Server

DIM, ROWS = 64, 200
SIZE, BALLAST = 6 << 20, 2 << 20  # bytes: all of the disk, and what is freed in the end


@contextmanager
def small_disk(folder: Path) -> Iterator[Path | None]:
    """A file system of a few megabytes that the server may write to; None where this user may not mount one."""
    place = folder / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=700", "tmpfs", str(place)]
    mounted = os.geteuid() == 0 and shutil.which("mount") is not None
    mounted = mounted and subprocess.run(command, capture_output=True, check=False).returncode == 0
    try:
        if mounted:
            shutil.chown(place, USER)
        yield place if mounted else None
    finally:
        if mounted:
            subprocess.run(["umount", "--lazy", str(place)], capture_output=True, check=True)


def fill_disk(running: Server) -> bool:
    """Load until the disk is full, free some space, go on; whether this user could make such a disk."""
    with small_disk(running.folder) as place:
        if place is None:
            return False
        ballast = place / "ballast"
        ballast.write_bytes(bytes(BALLAST))
        _run(running, f"CREATE TABLESPACE small LOCATION '{place}'")
        try:
            _load(f"{running.address}?index=crowded&options=-c%20default_tablespace%3Dsmall", ballast)
        finally:
            _run(running, "DROP SCHEMA IF EXISTS crowded CASCADE")
            _run(running, "DROP TABLESPACE small")
    return True


def _run(running: Server, statement: str) -> None:
    with psycopg.connect(running.address, autocommit=True) as connection:
        connection.execute(statement)


def _load(address: str, ballast: Path) -> None:
    store = places.created(address, Identity(None, "none", DIM))
    try:
        kept, batch, message = _until_full(store)
        right("\n" not in message, f"the disk is full, in more than one line: {message}")
        right("the disk of the server is full: free some space" in message, f"a full disk is told as: {message}")
        _holds(store, kept)
        ballast.unlink()
        store.put(*batch)
        _holds(store, kept | {item.id for item in batch[0]})
        right(store.check() == [], "the store is not sound")
    finally:
        store.close()


def _until_full(store: Store) -> tuple[set[str], tuple[list[Item], np.ndarray], str]:
    """What was acknowledged, the batch that was refused, and the words of it."""
    kept: set[str] = set()
    for number in range(SIZE // (4 * DIM * ROWS) + 1):  # the vectors alone are more than the disk
        items = [Item(f"{number}-{row}", label=str(row)) for row in range(ROWS)]
        vectors = np.random.default_rng(number).standard_normal((ROWS, DIM)).astype(np.float32)
        try:
            store.put(items, vectors)
        except StorageError as error:
            return kept, (items, vectors), str(error)
        kept |= {item.id for item in items}
    raise AssertionError("the disk was never full")


def _holds(store: Store, kept: set[str]) -> None:
    """Exactly what was acknowledged, and a search that sees it."""
    there = {item.id for item in store.listed()}
    right(
        there == kept, f"{len(kept - there)} acknowledged items are gone, {len(there - kept)} were never acknowledged"
    )
    (answer,) = store.search(np.zeros((1, DIM), np.float32), 5)
    right(len(answer.hits) == 5, "a search does not answer")
