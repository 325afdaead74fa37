"""Marks of people as labels: what was marked right belongs together, and has the label of the items it belongs to.

A query marked right with an item is of its class; two queries marked right with one item are of one class, also where
nobody has given it a name. Where marks contradict labels or each other, the query is left out and counted.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from lookalike.data.audit.scan import MAGIC
from lookalike.search.items import Item, Mark
from lookalike.search.stores import Store

UNNAMED = "marked"  # begins the name of a class that no item has a name for


@dataclass(frozen=True)
class Pair:
    """A query, an item, and whether they show the same."""

    query: Path
    item: Path
    right: bool


@dataclass(frozen=True)
class Labels:
    """Pictures with their classes, pairs with the word on them, and what could not be used."""

    rows: Sequence[tuple[Path, str]]
    pairs: Sequence[Pair]
    contradicted: int  # queries
    lost: int  # marks whose pictures are gone


def labels(store: Store, pictures: Path) -> Labels:
    """The marks of an index; pictures that are no files are written into the folder `pictures`."""
    marks = store.marks.every()
    known = {item.id: item for item in store.items(sorted({name for mark in marks for name in _items(mark)}))}
    usable = [mark for mark in marks if all(name in known for name in _items(mark))]
    files = _Files(store, known, pictures)
    placed = [(mark, files.query(mark), files.item(mark.item)) for mark in usable]
    pairs = [Pair(query, item, mark.right) for mark, query, item in placed if query is not None and item is not None]
    classes, contradicted = _classes(usable, known)
    rows = {files.node(node): label for node, label in classes.items()}
    lost = len(marks) - len(pairs)
    return Labels(sorted((path, label) for path, label in rows.items() if path is not None), pairs, contradicted, lost)


def _items(mark: Mark) -> list[str]:
    return [mark.item, *([mark.query_item] if mark.query_item is not None else [])]


def _node(mark: Mark) -> tuple[str, str]:
    """The query of a mark among items and queries."""
    return ("item", mark.query_item) if mark.query_item is not None else ("query", mark.query)


def _classes(marks: Sequence[Mark], known: dict[str, Item]) -> tuple[dict[tuple[str, str], str], int]:
    """The class of every query and item that marks speak of, and how many queries are contradicted."""
    groups = _joined([(_node(mark), ("item", mark.item)) for mark in marks if mark.right])
    wrong = [(_node(mark), ("item", mark.item)) for mark in marks if not mark.right]
    result: dict[tuple[str, str], str] = {}
    contradicted = 0
    for number, group in enumerate(groups, start=1):
        own = Counter(label for kind, name in group if kind == "item" and (label := known[name].label) is not None)
        label = own.most_common(1)[0][0] if own else f"{UNNAMED} {number}"
        denied = any(query in group and (item in group or known[item[1]].label == label) for query, item in wrong)
        if len(own) > 1 or denied:
            contradicted += sum(kind == "query" for kind, _ in group)
        else:
            result |= dict.fromkeys(group, label)
    return result, contradicted


def _joined(edges: Sequence[tuple[tuple[str, str], tuple[str, str]]]) -> list[set[tuple[str, str]]]:
    """What hangs together, in the order of the first mark."""
    groups: list[set[tuple[str, str]]] = []
    for one, other in edges:
        touching = [group for group in groups if one in group or other in group]
        merged = {one, other}.union(*touching)
        place = groups.index(touching[0]) if touching else len(groups)
        groups = [group for group in groups if group not in touching]
        groups.insert(place, merged)
    return groups


@dataclass
class _Files:
    """Pictures as files: an item's own, or one that is written."""

    store: Store
    known: dict[str, Item]
    folder: Path

    def node(self, node: tuple[str, str]) -> Path | None:
        kind, name = node
        if kind == "item":
            return self.item(name)
        return self._written(f"query_{_safe(name)}", self.store.marks.picture(name))

    def query(self, mark: Mark) -> Path | None:
        return self.node(_node(mark))

    def item(self, name: str) -> Path | None:
        path = self.known[name].path
        if path is not None:
            return Path(path) if Path(path).is_file() else None
        return self._written(f"item_{_safe(name)}", self.store.documents.pictures([name]).get(name))

    def _written(self, name: str, content: bytes | None) -> Path | None:
        if content is None:
            return None
        self.folder.mkdir(parents=True, exist_ok=True)
        ending = next((endings[0] for start, endings in MAGIC.items() if content.startswith(start)), "jpg")
        place = self.folder / f"{name}.{ending}"
        if not place.exists():
            place.write_bytes(content)
        return place.resolve()


def _safe(name: str) -> str:
    """A name for a file, whatever an item or a query is called."""
    return blake2b(name.encode(), digest_size=8).hexdigest()
