"""Vectors made elsewhere, with their ids and columns, into an index: a file, or the shards of many workers."""

from collections.abc import Sequence
from pathlib import Path

from lookalike.errors import check
from lookalike.progress import Progress
from lookalike.search.adding import vectors
from lookalike.search.adding.update import Update
from lookalike.search.items import Item, Vectors
from lookalike.search.queries import placed
from lookalike.search.stores import Store

BULK = 10_000  # vectors of one transaction


def load(store: Store, place: Path, progress: Progress | None = None) -> Update:
    """Add what is new or different in `place`; vectors of another model are refused."""
    files, result = vectors.files(place), Update(unreadable=vectors.unreadable(place))
    for number, file in enumerate(files):
        items, raw, fingerprint = vectors.read(file)
        identity = store.identity
        content = placed(raw, identity.geometry)
        check(
            fingerprint in (None, identity.fingerprint),
            f"the vectors in '{place.name}' come from another model than this index's",
        )
        for start in range(0, len(items), BULK):
            _put(store, items[start : start + BULK], content[start : start + BULK], identity.generation, result)
            if progress is not None and len(files) == 1:
                progress(min(start + BULK, len(items)), len(items))
        if progress is not None and len(files) > 1:
            progress(number + 1, len(files))
    return result


def _put(store: Store, items: Sequence[Item], content: Vectors, generation: int, result: Update) -> None:
    """Write what is new or different; a file that is as it was has the vector that it had."""
    known = {item.id: item for item in store.items([item.id for item in items])}
    rows = [row for row, item in enumerate(items) if item.stamp is None or item != known.get(item.id)]
    if rows:
        store.put([items[row] for row in rows], content[rows], generation=generation)
    new = sum(items[row].id not in known for row in rows)
    result.added, result.changed = result.added + new, result.changed + len(rows) - new
    result.unchanged += len(items) - len(rows)
