"""Marks of people as labels: what was marked right belongs together, and has the label of the items it belongs to.

A query marked right with an item is of its class; two queries marked right with one item are of one class, also where
nobody has given it a name. Of a query that was only marked wrong is known which classes it does not belong to. Where
marks contradict labels or each other, the query is left out and listed.
"""

import csv
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from lookalike.data.audit.scan import MAGIC
from lookalike.data.formats.table import guarded
from lookalike.files import printable, whole_file
from lookalike.search.items import Item, Mark
from lookalike.search.stores import Store
from lookalike.search.stores.copying import THING
from lookalike.search.things import called

UNNAMED = "marked"  # begins the name of a class that no item has a name for


@dataclass(frozen=True)
class Pair:
    """A query, an item, and whether they show the same."""

    query: Path
    item: Path
    right: bool


@dataclass(frozen=True)
class Labels:
    """Pictures with their classes, or with those they do not belong to; pairs; and what could not be used."""

    rows: Sequence[tuple[Path, str]]
    denied: Sequence[tuple[Path, Sequence[str]]]  # of queries without a class
    pairs: Sequence[Pair]
    contradicted: Sequence[str]  # queries, and how
    lost: int  # marks whose pictures are gone

    @property
    def classes(self) -> int:
        return len({label for _, label in self.rows})

    def write(self, table: Path) -> Path:
        """The table of labels, which `fit`, `calibrate` and `index` read, and beside it that of the pairs; its name."""
        labelled = [(path, label, "") for path, label in self.rows]
        denied = [(path, "", "|".join(labels)) for path, labels in self.denied]
        _write(table, ["path", "label", "not_label"], labelled + denied)
        pairs = table.with_suffix(".pairs.csv")
        judged = [(pair.query, pair.item, "yes" if pair.right else "no") for pair in self.pairs]
        _write(pairs, ["left", "right", "same"], judged)
        return pairs


def _write(place: Path, header: list[str], rows: Iterable[Sequence[object]]) -> None:
    with whole_file(place, "w") as file:
        table = csv.writer(file)
        table.writerow(header)
        table.writerows([guarded(printable(str(cell))) for cell in row] for row in rows)


def labels(store: Store, pictures: Path) -> Labels:
    """The marks of an index; pictures that are no files are written into the folder `pictures`.

    Where its photos are things, those are the classes: a hit that is right is right for all photos of its thing.
    """
    marks, thing = store.marks.every(), store.documents.read(THING)
    marked = store.items(sorted({name for mark in marks for name in _items(mark)}))
    known = {item.id: called(item, thing) for item in marked}
    usable = [mark for mark in marks if all(name in known for name in _items(mark))]
    files = _MarkedPictures(store, known, pictures)
    placed = [(mark, files.query(mark), files.item(mark.item)) for mark in usable]
    pairs = [Pair(query, item, mark.right) for mark, query, item in placed if query is not None and item is not None]
    classes, contradicted = _classes(usable, known)
    denied = _denied(usable, known, {*classes, *contradicted})
    classes |= {("item", item): label for wrong in denied.values() for item, label in wrong.items()}
    rows = {path: label for node, label in classes.items() if (path := files.node(node)) is not None}
    names = [
        (path, sorted(set(wrong.values()))) for node, wrong in denied.items() if (path := files.node(node)) is not None
    ]
    words = [f"{files.node(node) or node[1]}: {why}" for node, why in contradicted.items() if node[0] == "query"]
    return Labels(sorted(rows.items()), sorted(names), pairs, words, len(marks) - len(pairs))


def _items(mark: Mark) -> list[str]:
    return [mark.item, *([mark.query_item] if mark.query_item is not None else [])]


def _node(mark: Mark) -> tuple[str, str]:
    """The query of a mark among items and queries."""
    return ("item", mark.query_item) if mark.query_item is not None else ("query", mark.query)


def _denied(
    marks: Sequence[Mark], known: dict[str, Item], settled: set[tuple[str, str]]
) -> dict[tuple[str, str], dict[str, str]]:
    """The items, with their labels, that pictures without any class are marked wrong for."""
    result: dict[tuple[str, str], dict[str, str]] = {}
    for mark in marks:
        node, label = _node(mark), known[mark.item].label
        own = known[mark.query_item].label if mark.query_item is not None else None
        if not mark.right and label is not None and own is None and node not in settled:
            result.setdefault(node, {})[mark.item] = label
    return result


def _classes(
    marks: Sequence[Mark], known: dict[str, Item]
) -> tuple[dict[tuple[str, str], str], dict[tuple[str, str], str]]:
    """The class of every query and item that was marked right, and the others with what contradicts them."""
    groups = _joined([(_node(mark), ("item", mark.item)) for mark in marks if mark.right])
    wrong = [(_node(mark), ("item", mark.item)) for mark in marks if not mark.right]
    result: dict[tuple[str, str], str] = {}
    contradicted: dict[tuple[str, str], str] = {}
    for number, group in enumerate(groups, start=1):
        own = Counter(label for kind, name in group if kind == "item" and (label := known[name].label) is not None)
        label = own.most_common(1)[0][0] if own else f"{UNNAMED} {number}"
        denied = [item for query, item in wrong if query in group and (item in group or known[item[1]].label == label)]
        if len(own) > 1:
            contradicted |= dict.fromkeys(group, f"marked right for {' and for '.join(sorted(own))}")
        elif denied:
            contradicted |= dict.fromkeys(group, f"marked right for {label}, and wrong for '{denied[0][1]}' of it")
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
class _MarkedPictures:
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
