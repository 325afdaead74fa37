"""Bringing an index up to date with what lies on disk: only what is new or changed is embedded.

A file whose size and time are as they were is passed over; one whose content is as it was keeps its vector. Images are
read, and cut to what the network sees, by threads while it works on those before. One batch is one transaction: what is
done stays done, so an interrupted update simply goes on.
"""

import hashlib
import io
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lookalike.data.images.decode import Encoded
from lookalike.errors import check
from lookalike.files import printable
from lookalike.image_files import UnreadableError, read
from lookalike.ordered_map import in_order
from lookalike.progress import Progress
from lookalike.search.adding.encoding import Encoding, Inputs, Ready
from lookalike.search.adding.sources import Entry, Listing
from lookalike.search.filters import Condition, Kind
from lookalike.search.items import Item, Stamp
from lookalike.search.log import removed
from lookalike.search.stores import BadValueError, Store
from lookalike.search.stores.fields import check_kinds
from lookalike.workers import Workers

BATCH = 128  # images of one transaction
READERS = max(2, os.cpu_count() or 1)  # threads
BESIDE = 2  # threads that read in each of several workers


@dataclass
class Update:
    """What an update did."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    unreadable: list[tuple[str, str]] = field(default_factory=list)  # what it is called, and why

    def __str__(self) -> str:
        parts = [f"{self.added:,} added", f"{self.changed:,} changed", f"{self.unchanged:,} unchanged"]
        parts += [f"{self.removed:,} removed"] if self.removed else []
        parts += [f"{len(self.unreadable):,} unreadable"] if self.unreadable else []
        return ", ".join(parts)


@dataclass(frozen=True)
class _Read:
    """An entry that was read: inputs where it must be embedded, then its vector; else the item to store."""

    item: Item
    inputs: Inputs | None = None
    vector: NDArray[np.float32] | None = None
    picture: bytes | None = None
    problem: str | None = None


def update(
    store: Store,
    listing: Listing,
    encoding: Callable[[], Encoding],
    generation: int,
    progress: Progress | None = None,
    workers: Workers = Workers(),  # noqa: B008  # it is frozen
) -> Update:
    """Add what is new, embed again what has changed; `workers` read and embed, and this process writes.

    `encoding` is called when the first image must be embedded; `generation`: that of the vectors that it gives.
    """
    _check_kinds(listing, store.columns())
    done, result = 0, Update(unreadable=list(listing.skipped))
    ready = _elsewhere if workers.elsewhere else _here
    for batch in ready(store, listing, _once(encoding), workers):
        _write(store, batch, result, generation)
        done += len(batch)
        if progress is not None:
            progress(done, len(listing.entries))
    return result


def _check_kinds(listing: Listing, known: Mapping[str, Kind]) -> None:
    """Refuse values that the columns of the index cannot hold, before any image is read."""
    try:
        check_kinds([entry.item for entry in listing.entries], known)
    except BadValueError as error:
        line = next((entry.line for entry in listing.entries if entry.item.id == error.item), None)
        raise error if line is None else BadValueError(f"'{listing.root}' line {line}: {error}") from None


def prune(store: Store, listing: Listing) -> int:
    """Remove the items of a root that it no longer names; a root that names nothing removes nothing."""
    named = {entry.item.path or entry.item.id for entry in listing.entries}
    check(bool(named), f"'{listing.root}' holds no image, so nothing is removed: check the place")
    of_root = (Condition("root", "=", (listing.root,)),)
    gone = [item.id for item in store.listed(of_root) if (item.path or item.id) not in named]
    for start in range(0, len(gone), BATCH):
        store.remove(gone[start : start + BATCH])
    if gone:
        store.log.append(*removed(gone, len(gone)))
    return len(gone)


def _once(load: Callable[[], Encoding]) -> Callable[[], Encoding]:
    """The same encoding for all threads, loaded when the first of them needs it."""
    lock, loaded = Lock(), list[Encoding]()

    def get() -> Encoding:
        with lock:
            if not loaded:
                loaded.append(load())
            return loaded[0]

    return get


def _here(store: Store, listing: Listing, encoding: Callable[[], Encoding], _: Workers) -> Iterator[list[_Read]]:
    for batch in _ahead(store, listing.entries, lambda picture: encoding().ready(picture)):
        yield batch if all(one.inputs is None for one in batch) else _embedded(batch, encoding())


def _elsewhere(
    store: Store, listing: Listing, encoding: Callable[[], Encoding], workers: Workers
) -> Iterator[list[_Read]]:
    check(
        all(entry.pixels is None for entry in listing.entries),
        f"the images of '{listing.root}' are not files, which other processes could read: add them by this one process",
    )

    def pieces() -> Iterator[list[tuple[Entry, Item | None]]]:
        for batch in _batches(listing.entries):
            known = _known(store, [entry.item for entry in batch])
            yield [(entry, known.get(_name(entry.item))) for entry in batch]

    return workers.map(_Looking(encoding().named()), pieces())


@dataclass(frozen=True)
class _Looking:
    """What a process needs to read and embed a batch; called, it is ready for one after the other."""

    encoding: Encoding

    def __call__(self) -> Callable[[Sequence[tuple[Entry, Item | None]]], list[_Read]]:
        return self._look

    def _look(self, batch: Sequence[tuple[Entry, Item | None]]) -> list[_Read]:
        reads = in_order(lambda row: _look(*batch[row], self.encoding.ready), len(batch), BESIDE)
        return _embedded(reads, self.encoding)


def _embedded(reads: Iterable[_Read], encoding: Encoding) -> list[_Read]:
    """A batch with vectors in the place of inputs."""
    batch: list[_Read] = []

    def fresh() -> Iterator[Inputs]:
        for one in reads:
            batch.append(one)
            if one.inputs is not None:
                yield one.inputs

    vectors = iter(encoding.of_ready(fresh()))
    return [one if one.inputs is None else replace(one, inputs=None, vector=next(vectors)) for one in batch]


def _ahead(store: Store, entries: Sequence[Entry], ready: Ready) -> Iterator[list[_Read]]:
    """Batches of entries that were looked at, the next one read while the caller works on this one."""
    with ThreadPoolExecutor(READERS) as pool:
        waiting: list[list[Future[_Read]]] = []
        for batch in _batches(entries):
            known = _known(store, [entry.item for entry in batch])
            waiting.append([pool.submit(_look, entry, known.get(_name(entry.item)), ready) for entry in batch])
            if len(waiting) > 1:
                yield [future.result() for future in waiting.pop(0)]
        for futures in waiting:
            yield [future.result() for future in futures]


def _batches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    rest = iter(entries)
    while batch := list(islice(rest, BATCH)):
        yield batch


def _name(item: Item) -> str:
    """What makes an item the same one in the next update: its file, else its id."""
    return item.path or item.id


def _known(store: Store, items: Sequence[Item]) -> dict[str, Item]:
    """The items of the index that these are."""
    known = dict(store.at_paths([item.path for item in items if item.path is not None]))
    known |= {item.id: item for item in store.items([item.id for item in items if item.path is None])}
    return known


def _look(entry: Entry, known: Item | None, ready: Ready) -> _Read:
    """Read an image unless it is as it was."""
    item = entry.item if known is None else replace(entry.item, id=known.id)
    try:
        if item.path is None:
            return _look_at_pixels(entry, item, known, ready)
        status = os.stat(item.path)
        if known is not None and known.stamp is not None and _same_file(known.stamp, status):
            return _Read(replace(item, stamp=known.stamp, mapped=known.mapped))
        content = read(Path(item.path))
        stamp = Stamp(status.st_size, status.st_mtime_ns, digest_of(content))
        item = replace(item, stamp=stamp)
        if known is not None and known.stamp is not None and known.stamp.digest == stamp.digest:
            return _Read(replace(item, mapped=known.mapped))
        return _Read(item, ready(Encoded(content).decode()))
    except UnreadableError as error:
        return _Read(item, problem=error.detail)
    except OSError as error:
        return _Read(item, problem=error.strerror or str(error))


def _same_file(stamp: Stamp, status: os.stat_result) -> bool:
    return (stamp.size, stamp.modified) == (status.st_size, status.st_mtime_ns)


def _look_at_pixels(entry: Entry, item: Item, known: Item | None, ready: Ready) -> _Read:
    assert entry.pixels is not None
    pixels = entry.pixels()
    array = np.ascontiguousarray(pixels.permute(1, 2, 0).numpy())
    item = replace(item, stamp=Stamp(array.nbytes, 0, digest_of(array.tobytes())))
    if (
        known is not None
        and known.stamp is not None
        and item.stamp is not None
        and known.stamp.digest == item.stamp.digest
    ):
        return _Read(replace(item, mapped=known.mapped))
    return _Read(item, ready(pixels), picture=_as_png(array))


def _as_png(array: Any) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(array).save(file, "PNG")
    return file.getvalue()


def digest_of(content: bytes) -> str:
    """By which a file, or the pixels of a picture without one, are known again."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def _distinct(store: Store, fresh: Sequence[_Read]) -> list[_Read]:
    """New images with ids of their own: where another file has the id already, the path tells them apart."""
    owners = {item.id: item.path for item in store.items([one.item.id for one in fresh])}
    result = []
    for one in fresh:
        path = one.item.path
        if owners.setdefault(one.item.id, path) != path:
            one = replace(one, item=replace(one.item, id=f"{one.item.id}~{digest_of(os.fsencode(path or ''))[:8]}"))
        result.append(one)
    return result


def _write(store: Store, batch: Sequence[_Read], result: Update, generation: int) -> None:
    """Write a batch, in one transaction; refused where another model answers by now."""
    result.unreadable += [(printable(_name(one.item)), one.problem) for one in batch if one.problem is not None]
    fresh = _distinct(store, [one for one in batch if one.vector is not None])
    before = {item.id: item for item in store.items([one.item.id for one in (*fresh, *batch)])}
    same = [one.item for one in batch if one.vector is None and one.problem is None]
    # whether its vector is mapped is asked before the vector is read: an upgrade may embed it in between
    same = [replace(item, mapped=before[item.id].mapped) if item.id in before else item for item in same]
    edited = [item for item in same if item != before.get(item.id)]  # another label, column or time
    items, vectors = [one.item for one in fresh], []
    if fresh:
        vectors.append(np.stack([one.vector for one in fresh if one.vector is not None]))
    if edited:
        vectors.append(store.vectors([item.id for item in edited]))
    if vectors:
        pictures = {one.item.id: one.picture for one in fresh if one.picture is not None}
        pictures |= {
            item.id: content
            for item in edited
            if item.path is None and (content := store.documents.pictures([item.id]).get(item.id))
        }
        store.put(items + edited, np.concatenate(vectors), pictures, generation)
    result.added += sum(item.id not in before for item in items)
    result.changed += sum(item.id in before for item in items) + len(edited)
    result.unchanged += len(same) - len(edited)
