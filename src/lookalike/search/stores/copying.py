"""A whole index from one store into another: folder to server and back, between numbers of shards.

Blocks go in the order of ids, and the target remembers the last one, so a copy that was stopped goes on from there. At
the end both sides are counted and read through, and their digests compared.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from lookalike.errors import UserError, check
from lookalike.progress import Progress, Stage
from lookalike.search.items import Item, Value, Vectors
from lookalike.search.stores import Store

FACT = "copy"  # where an unfinished copy has come to
COPIED = "copied"  # the digest of a finished one: what it holds may be replaced by a later copy
THING = "thing"  # the column that says which thing a photo shows
UPGRADE = "upgrade"  # the map by which some vectors were made, until the last of them is embedded again
FACTS = ("calibration", "quality", "reference", THING, UPGRADE)
BATCH = 1_000  # items of one change


@dataclass(frozen=True)
class Copied:
    """What a copy holds: the digest is that of every item, vector and picture."""

    items: int
    digest: str
    resumed: bool


def copy(source: Store, target: Store, stage: Stage = lambda _: None, replace_items: bool = False) -> Copied:
    """Make the target equal to the source.

    A target that is not a copy and has items of its own is refused, unless `replace_items` gives them up.
    """
    check(_same(source, target), "the target holds vectors of another model: copy to a new place")
    unfinished = target.documents.read(FACT)
    if unfinished is None and target.documents.read(COPIED) is None and not replace_items:
        count = target.count()
        check(
            count == 0,
            f"the target is not a copy: {count:,} own items would be lost; copy to a new place, or --replace them",
        )
    after = "" if unfinished is None else str(json.loads(unfinished)["after"])
    target.documents.write(FACT, json.dumps({"after": after}))
    _copy_documents(source, target)
    _copy_items(source, target, after, stage("copying"))
    _remove_others(source, target)
    _copy_marks(source, target)
    result = Copied(target.count(), _compared(source, target, stage), bool(after))
    target.documents.write(COPIED, result.digest)
    target.documents.write(FACT, None)
    return result


def _same(source: Store, target: Store) -> bool:
    one, other = source.identity, target.identity
    return replace(one, generation=0) == replace(other, generation=0)


def _copy_documents(source: Store, target: Store) -> None:
    fingerprint = source.identity.fingerprint
    if fingerprint is not None:
        target.documents.keep_model(fingerprint, source.documents.model(fingerprint))
    for name in FACTS:
        target.documents.write(name, source.documents.read(name))


def _copy_items(source: Store, target: Store, after: str, progress: Progress | None) -> None:
    total = source.count()
    done = sum(1 for item in target.listed() if item.id <= after) if after else 0
    for items, vectors in _batches(source, after):
        target.put(items, vectors, _pictures(source, items))
        target.documents.write(FACT, json.dumps({"after": items[-1].id}))
        done += len(items)
        if progress is not None:
            progress(min(done, total), total)


def _batches(store: Store, after: str = "") -> Iterator[tuple[list[Item], Vectors]]:
    """All items by id, in parts that are small enough to hold their pictures."""
    for items, vectors in store.scan(after or None):
        for start in range(0, len(items), BATCH):
            yield items[start : start + BATCH], vectors[start : start + BATCH]


def _pictures(store: Store, items: Sequence[Item]) -> dict[str, bytes]:
    unfiled = [item.id for item in items if item.path is None]
    return store.documents.pictures(unfiled) if unfiled else {}


def _remove_others(source: Store, target: Store) -> None:
    """Items that the source does not have."""
    gone = list(_others(source.listed(), target.listed()))
    for start in range(0, len(gone), BATCH):
        target.remove(gone[start : start + BATCH])


def _others(known: Iterator[Item], some: Iterator[Item]) -> Iterator[str]:
    """Ids of `some` that are not among `known`; both rise."""
    last = next(known, None)
    for item in some:
        while last is not None and last.id < item.id:
            last = next(known, None)
        if last is None or last.id != item.id:
            yield item.id


def _copy_marks(source: Store, target: Store) -> None:
    marks = source.marks.every()
    named = {(mark.query, mark.item) for mark in marks}
    for mark in target.marks.every():
        if (mark.query, mark.item) not in named:
            target.marks.remove(mark.number)
    for mark in marks:
        target.marks.add(mark, source.marks.picture(mark.query))


def _compared(source: Store, target: Store, stage: Stage) -> str:
    """The digest of both; refused where counts or digests differ, and the next copy begins again."""
    own, (count, copied) = digest(source, stage("reading the source")), (source.count(), target.count())
    if count == copied and own == digest(target, stage("reading the copy")):
        return own
    target.documents.write(FACT, json.dumps({"after": ""}))
    problem = "differs from its source" if count == copied else f"has {copied:,} items, its source {count:,}"
    raise UserError(f"the copy {problem}: the source was changed meanwhile; the same command brings it up to date")


def digest(store: Store, progress: Progress | None = None) -> str:
    """One digest of everything that can be found: items, vectors, pictures, in the order of ids."""
    state, done, total = blake2b(digest_size=16), 0, store.count() if progress is not None else 0
    for items, vectors in _batches(store):
        pictures = _pictures(store, items)
        for item, vector in zip(items, vectors, strict=True):
            state.update(json.dumps(_plain(item), sort_keys=True).encode())
            state.update(vector.tobytes())
            state.update(pictures.get(item.id, b""))
        done += len(items)
        if progress is not None:
            progress(done, total)
    return state.hexdigest()


def _plain(item: Item) -> list[Any]:
    stamp = None if item.stamp is None else [item.stamp.size, item.stamp.modified, item.stamp.digest]
    path = None if item.path is None else item.path.encode(errors="surrogateescape").hex()
    return [item.id, path, item.label, item.root, stamp, item.added, _numbers(item.columns), *["mapped"] * item.mapped]


def _numbers(columns: Mapping[str, Value]) -> dict[str, Value]:
    """Columns whose whole numbers and fractions of the same value are the same."""
    return {
        name: int(value) if isinstance(value, int | float) and float(value).is_integer() else value
        for name, value in columns.items()
    }


def into_file(source: Store, file: Path) -> None:
    """A backup: the index as a folder's one file."""
    from lookalike.search.stores.sqlite.store import SqliteStore

    with tempfile.TemporaryDirectory(dir=file.parent if file.parent.is_dir() else None) as folder:
        target = SqliteStore.create(Path(folder) / "index", source.identity)
        copy(source, target)
        target.backup(file)
        target.close()
