"""Which items searches have found while their vectors are mapped: those are embedded again first.

Workers of a server add to one small document without waiting for each other. What is lost on the way is only a hint.
"""

import json
from collections import Counter
from collections.abc import Iterable

from lookalike.search.items import Answer, Item
from lookalike.search.stores import Store
from lookalike.search.stores.fields import is_text

HITS = "hits"  # the document
MOST = 1_000  # items in it
OFTEN = 1_000_000  # more is not counted


def mapped_hits(answer: Answer) -> Iterable[str]:
    """The ids of the photos in an answer whose vectors are mapped."""
    return (photo.id for hit in answer.hits for photo in (hit.photos or [hit]) if photo.item.mapped)


def note(store: Store, counts: Counter[str]) -> None:
    """Add to what was found; items that are gone, or are not mapped any more, are left out."""
    every = _kept(store) + counts
    there = {item.id for item in store.items(list(every)) if item.mapped}
    kept = {id_: count for id_, count in every.most_common() if id_ in there}
    text = json.dumps(dict(list(kept.items())[:MOST]), ensure_ascii=False) if kept else None
    store.documents.write(HITS, text)


def first(store: Store) -> list[Item]:
    """The mapped items that were found, the most often found first."""
    return [item for item in store.items([id_ for id_, _ in _kept(store).most_common()]) if item.mapped]


def _kept(store: Store) -> Counter[str]:
    """The document, which may come from anywhere: it only says what is embedded first."""
    try:
        content = json.loads(store.documents.read(HITS) or "{}")
        known = {id_: count for id_, count in content.items() if is_text(id_) and isinstance(count, int)}
        return Counter({id_: min(count, OFTEN) for id_, count in known.items()})
    except (AttributeError, RecursionError, ValueError):
        return Counter()
