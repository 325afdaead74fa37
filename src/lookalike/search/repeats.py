"""Items that occur more than once, in levels kept apart: same bytes, same picture, mirror image, crop, look-alike.

Same bytes: equal digests. Same picture: the audit's perceptual hash, confirmed by the thumbnails, which re-encoding and
resizing leave alone. Mirror image: the same with one of two mirrored. Crop: one is a part of the other, among those
whose vectors are near. Look-alike: vectors above a similarity; a group is what such pairs connect. Two photos of one
thing are no look-alikes: they are meant to look alike.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, get_args

import torch

from lookalike.data import Dataset
from lookalike.data.audit.duplicates import mirror_groups, near_groups
from lookalike.data.audit.scan import scan
from lookalike.data.images.source import Files
from lookalike.data.string_column import StringColumn
from lookalike.errors import UserError
from lookalike.image_files import UnreadableError
from lookalike.progress import Progress
from lookalike.search.crops import GreyPhoto
from lookalike.search.items import Hit, Item
from lookalike.search.pictures import content_of
from lookalike.search.queries import pixels_of
from lookalike.search.stores import Store, complete
from lookalike.search.stores.copying import THING

TOGETHER = 64  # items of one search
NEIGHBOURS = 20  # that are looked at per item
KEPT = 2_000  # photos in memory while crops are looked for
Level = Literal["same bytes", "same picture", "mirror image", "crop", "look-alike"]
LEVELS: tuple[Level, ...] = get_args(Level)


@dataclass(frozen=True)
class Group:
    """Items that are one and the same, or nearly; `similarity` is the lowest between neighbours in it."""

    level: Level
    items: tuple[Item, ...]
    similarity: float


def repeats(
    store: Store,
    similarity: float,
    other: Store | None = None,
    progress: Progress | None = None,
    cropped: Progress | None = None,
) -> list[Group]:
    """All levels, each without what a stricter one says already; crops where `cropped` is told how far they are."""
    stores = [store] if other is None else [store, other]
    known = same_bytes(stores)
    for level in same_picture(stores):
        known += without(level, known)
    if cropped is not None:
        known += without(crops(store, other, known, cropped), known)
    return known + without(look_alikes(store, similarity, other, progress), known)


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
    thing = store.documents.read(THING)
    pairs: list[tuple[Item, Item, float]] = []
    for item, hits in _neighbours(store, other, progress):
        near = [hit for hit in hits if hit.similarity >= threshold]
        pairs += [(item, hit.item, hit.similarity) for hit in near if not _of_one(thing, item, hit.item)]
    return list(_groups("look-alike", pairs))


def crops(
    store: Store, other: Store | None = None, known: Sequence[Group] = (), progress: Progress | None = None
) -> list[Group]:
    """Items of which one is a part of the other, among those whose vectors are near and that no `known` group joins."""
    pairs: dict[frozenset[str], tuple[Item, Item, float]] = {}
    seen, groups = set(), _groups_of(known)
    stores = (store, other or store)
    grey = lru_cache(KEPT)(lambda place, id_: _grey(stores[place], id_))
    for item, hits in _neighbours(store, other, progress):
        for hit in hits:
            pair = frozenset((_key(item), _key(hit.item)))
            if hash(pair) in seen or groups[_key(item)] & groups[_key(hit.item)]:
                continue
            seen.add(hash(pair))
            one, two = grey(0, item.id), grey(1 if other else 0, hit.id)
            found = 0.0 if one is None or two is None else max(one.within(two), two.within(one))
            if found > 0:
                pairs[pair] = item, hit.item, min(found, 1.0)
    return list(_groups("crop", list(pairs.values())))


def _grey(store: Store, id_: str) -> GreyPhoto | None:
    """The photo of an item; None where it is not there or cannot be read."""
    try:
        contents = [content_of(store, item) for item in store.items([id_])]
        return None if not contents or contents[0] is None else GreyPhoto.of(pixels_of(contents[0]))
    except (UserError, UnreadableError):
        return None


def _neighbours(store: Store, other: Store | None, progress: Progress | None) -> Iterator[tuple[Item, Sequence[Hit]]]:
    """Every item, with those whose vectors are nearest, in the same index or in the `other`."""
    total, done = store.count(), 0
    for items, vectors in store.scan():
        for start in range(0, len(items), TOGETHER):
            answers = complete((other or store).search(vectors[start : start + TOGETHER], NEIGHBOURS))
            for item, answer in zip(items[start : start + TOGETHER], answers, strict=True):
                yield item, [hit for hit in answer.hits if other is not None or hit.id != item.id]
            done += len(items[start : start + TOGETHER])
            if progress is not None:
                progress(done, total)


def _of_one(thing: str | None, item: Item, other: Item) -> bool:
    """Whether two photos show one thing; `thing` is the column that says so."""
    return thing is not None and item.value(thing) is not None and item.value(thing) == other.value(thing)


def _groups(level: Level, pairs: Sequence[tuple[Item, Item, float]]) -> Iterator[Group]:
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
        yield Group(level, tuple(sorted(members[root], key=_key)), lowest[root])


def _key(item: Item) -> str:
    return f"{item.root}\0{item.id}"


def _root(parent: dict[str, str], key: str) -> str:
    while parent[key] != key:
        parent[key] = parent[parent[key]]
        key = parent[key]
    return key


def without(groups: Sequence[Group], known: Sequence[Group]) -> list[Group]:
    """Groups that say more than those of stricter levels: some of their items are in no group together there."""
    merged = _groups_of(known)
    return [group for group in groups if not set.intersection(*(merged[_key(item)] for item in group.items))]


def _groups_of(known: Sequence[Group]) -> dict[str, set[int]]:
    """The numbers of the groups that each item is in."""
    result: dict[str, set[int]] = defaultdict(set)
    for number, group in enumerate(known):
        for item in group.items:
            result[_key(item)].add(number)
    return result
