"""Items that are there more than once, in levels kept apart: same bytes, same picture, mirror image, look-alike.

Same bytes: equal digests. Same picture: the audit's perceptual hash, confirmed by the thumbnails, which re-encoding and
resizing leave alone. Mirror image: the same with one of two mirrored. Look-alike: vectors above a similarity; a group
is what such pairs connect. Two photos of one thing are no look-alikes: they are meant to look alike.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import torch

from lookalike.data import Dataset
from lookalike.data.audit.duplicates import mirror_groups, near_groups
from lookalike.data.audit.scan import scan
from lookalike.data.images.source import Files
from lookalike.data.string_column import StringColumn
from lookalike.search.items import Item
from lookalike.search.stores import Store, complete
from lookalike.search.stores.copying import THING

TOGETHER = 64  # items of one search
NEIGHBOURS = 20  # that are looked at per item
Level = Literal["same bytes", "same picture", "mirror image", "look-alike"]
LEVELS: tuple[Level, ...] = get_args(Level)
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Group:
    """Items that are one and the same, or nearly; `similarity` is the lowest between neighbours in it."""

    level: Level
    items: tuple[Item, ...]
    similarity: float


def repeats(
    store: Store, similarity: float, other: Store | None = None, progress: Progress | None = None
) -> list[Group]:
    """All levels, each without what a stricter one says already."""
    stores = [store] if other is None else [store, other]
    known = same_bytes(stores)
    for level in (*same_picture(stores), look_alikes(store, similarity, other, progress)):
        known += without(level, known)
    return known


def same_picture(stores: Sequence[Store]) -> tuple[list[Group], list[Group]]:
    """Items that the audit takes for one photo (other sizes, other compressions), and mirror images of one."""
    items = [item for store in stores for item in store.listed() if item.path is not None]
    if len(items) < 2:
        return [], []
    names = StringColumn.of([str(item.path).lstrip("/") for item in items])
    labels = torch.zeros(len(items), dtype=torch.int64)
    scanned = scan(Dataset("index", Files(Path("/"), names), labels, ("",)))
    members: dict[int, list[Item]] = defaultdict(list)
    for item, number in zip(items, near_groups(scanned).tolist(), strict=True):
        if number >= 0:
            members[number].append(item)
    same = [Group("same picture", tuple(group), 1.0) for group in members.values()]
    mirrored = [tuple(items[row] for row in rows) for rows in mirror_groups(scanned)]
    return same, [Group("mirror image", group, 1.0) for group in mirrored]


def same_bytes(stores: Sequence[Store]) -> list[Group]:
    """Items whose files have the same content."""
    by_digest: dict[str, list[Item]] = defaultdict(list)
    for store in stores:
        for item in store.listed():
            if item.stamp is not None:
                by_digest[item.stamp.digest].append(item)
    return [Group("same bytes", tuple(items), 1.0) for items in by_digest.values() if len(items) > 1]


def look_alikes(
    store: Store, threshold: float, other: Store | None = None, progress: Progress | None = None
) -> list[Group]:
    """Items of an index (with `other`: pairs across two) whose vectors are at least this similar."""
    total, done, thing = store.count(), 0, store.documents.read(THING)
    pairs: list[tuple[Item, Item, float]] = []
    for items, vectors in store.scan():
        for start in range(0, len(items), TOGETHER):
            answers = complete((other or store).search(vectors[start : start + TOGETHER], NEIGHBOURS))
            for item, answer in zip(items[start : start + TOGETHER], answers, strict=True):
                near = [hit for hit in answer.hits if hit.similarity >= threshold]
                near = [hit for hit in near if other is not None or hit.id != item.id]
                pairs += [(item, hit.item, hit.similarity) for hit in near if not _of_one(thing, item, hit.item)]
            done += len(items[start : start + TOGETHER])
            if progress is not None:
                progress(done, total)
    return list(_groups(pairs))


def _of_one(thing: str | None, item: Item, other: Item) -> bool:
    """Whether two photos show one thing; `thing` is the column that says so."""
    return thing is not None and item.value(thing) is not None and item.value(thing) == other.value(thing)


def _groups(pairs: Sequence[tuple[Item, Item, float]]) -> Iterator[Group]:
    """What pairs connect, the most similar first."""
    items = {_key(item): item for one, two, _ in pairs for item in (one, two)}
    parent: dict[str, str] = {key: key for key in items}
    for one, two, _ in pairs:
        parent[_root(parent, _key(one))] = _root(parent, _key(two))
    lowest: dict[str, float] = {}
    for one, _, similarity in pairs:
        root = _root(parent, _key(one))
        lowest[root] = min(similarity, lowest.get(root, similarity))
    members: dict[str, list[Item]] = defaultdict(list)
    for key, item in items.items():
        members[_root(parent, key)].append(item)
    for root in sorted(members, key=lambda root: -lowest[root]):
        yield Group("look-alike", tuple(sorted(members[root], key=_key)), lowest[root])


def _key(item: Item) -> str:
    return f"{item.root}\0{item.id}"


def _root(parent: dict[str, str], key: str) -> str:
    while parent[key] != key:
        parent[key] = parent[parent[key]]
        key = parent[key]
    return key


def without(groups: Sequence[Group], known: Sequence[Group]) -> list[Group]:
    """Groups that say more than those of stricter levels: some of their items are in no group together there."""
    merged: dict[str, set[int]] = defaultdict(set)
    for number, group in enumerate(known):
        for item in group.items:
            merged[_key(item)].add(number)
    return [group for group in groups if not set.intersection(*(merged[_key(item)] for item in group.items))]
