"""A person's answers about photos of an index, as marks in it: pairs that show the same, or do not.

Marks follow from the journal: what was taken back there is taken back here, whenever the two are compared.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lookalike.search.items import Mark
from lookalike.search.log import LogEntry, subject_of
from lookalike.search.stores import Store

REVIEW = "review"  # who marked it


def pairs(entry: Mapping[str, Any]) -> Iterator[tuple[int, int, bool]]:
    """The pairs of photos that a line of the journal is about, and whether they show the same."""
    word = entry["do"]
    if word in ("same", "different", "split"):
        yield entry["left"], entry["right"], word == "same"
    elif word == "name" and "right" in entry:
        yield entry["left"], entry["right"], True
    elif word == "out" and "right" in entry:
        for row in entry["rows"]:
            yield row, entry["right"], False


def keep(store: Store, ids: Sequence[str], entries: Sequence[Mapping[str, Any]], who: str = REVIEW) -> None:
    """Add the marks that are missing, and remove those that no longer hold; marks of other origin are left alone.

    The log names `who` made the change. Items that are no longer in the index get no marks.
    """
    said = dict[tuple[str, ...], tuple[str, str, bool]]()  # by both photos: of several words on two the last counts
    for one, other, right in (pair for entry in entries for pair in pairs(entry)):
        said[_both(ids[one], ids[other])] = ids[one], ids[other], right
    there = {item.id for item in store.items(sorted({id_ for both in said for id_ in both}))}
    said = {both: words for both, words in said.items() if there.issuperset(both)}
    for mark in store.marks.every():
        both = _both(mark.query_item or "", mark.item)
        if mark.by != REVIEW or (both in said and said[both][2] == mark.right):
            said.pop(both, None)
        elif store.marks.remove(mark.number):
            store.log.append(LogEntry(who, "mark taken back", f"mark {mark.number}"))
    for query, item, right in said.values():
        store.marks.add(Mark(f"item:{query}", query, item, right, by=REVIEW))
        store.log.append(LogEntry(who, "marked right" if right else "marked wrong", subject_of(item)))


def _both(one: str, other: str) -> tuple[str, ...]:
    """A key for two photos, whichever was named first."""
    return tuple(sorted((one, other)))
